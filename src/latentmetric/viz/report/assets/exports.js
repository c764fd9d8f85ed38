/* Buttons that save what is seen: figures as SVG and PNG, tables as CSV. Nothing leaves the page. */

const drawers = new Map();
/* Figures on a canvas register here a function that returns their SVG. */

(() => {
  const STYLES = [
    "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "font-family",
    "font-size", "font-weight", "text-anchor", "vector-effect", "opacity",
  ];
  const SHARPNESS = 2;

  const fileName = (name, ending) => {
    const title = document.title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 40);
    return `${title.replace(/^-|-$/g, "") || "report"}-${name}.${ending}`;
  };

  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };

  /* The style sheet stays behind, so that every element takes its computed style along. */
  const styled = (drawn) => {
    const copy = drawn.cloneNode(true);
    const [, , wide, high] = drawn.getAttribute("viewBox").split(" ").map(Number);
    const originals = [drawn, ...drawn.querySelectorAll("*")];
    [copy, ...copy.querySelectorAll("*")].forEach((element, place) => {
      const style = getComputedStyle(originals[place]);
      STYLES.forEach((name) => element.setAttribute(name, style.getPropertyValue(name)));
      element.removeAttribute("class");
    });
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", 2 * wide);
    copy.setAttribute("height", 2 * high);
    const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const colour = getComputedStyle(document.body).backgroundColor;
    Object.entries({ width: wide, height: high, fill: colour }).forEach(([name, value]) => {
      paper.setAttribute(name, value);
    });
    copy.prepend(paper);
    return new XMLSerializer().serializeToString(copy);
  };

  const svgOf = (figure) => {
    const drawer = drawers.get(figure.dataset.name);
    return drawer ? drawer() : styled(figure.querySelector("svg.chart"));
  };

  const saveSvg = (figure) => {
    save(new Blob([svgOf(figure)], { type: "image/svg+xml" }), fileName(figure.dataset.name, "svg"));
  };

  const savePng = (figure) => {
    const image = new Image();
    image.addEventListener("load", () => {
      const canvas = document.createElement("canvas");
      canvas.width = SHARPNESS * image.width;
      canvas.height = SHARPNESS * image.height;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(blob, fileName(figure.dataset.name, "png")), "image/png");
    });
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgOf(figure))}`;
  };

  /* Numbers as they are stored, text as it is seen; a spreadsheet must not run any of it. */
  const cellText = (cell) => {
    const value = cell.dataset.value;
    if (cell.classList.contains("number") && value) return value;
    const text = cell.textContent.replace(/\s+/g, " ").trim();
    const safe = /^[=+\-@]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };

  const saveCsv = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    const columns = heads.map((head, place) => place).filter((place) => !heads[place].classList.contains("bar-cell"));
    const lines = [...table.rows].filter((line) => !line.hidden);
    const text = lines.map((line) => columns.map((place) => cellText(line.cells[place])).join(",")).join("\r\n");
    save(new Blob(["\ufeff", text, "\r\n"], { type: "text/csv" }), fileName(table.dataset.name, "csv"));
  };

  const button = (text, said, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.setAttribute("aria-label", said);
    made.addEventListener("click", act);
    return made;
  };

  const buttonsAfter = (element, buttons) => {
    const bar = document.createElement("div");
    bar.className = "exports";
    bar.append(...buttons);
    element.after(bar);
  };

  document.querySelectorAll("figure[data-name]").forEach((figure) => {
    const { name } = figure.dataset;
    buttonsAfter(figure.firstElementChild, [
      button("PNG", `Save ${name} as PNG`, () => savePng(figure)),
      button("SVG", `Save ${name} as SVG`, () => saveSvg(figure)),
    ]);
  });
  document.querySelectorAll("table[data-name]").forEach((table) => {
    const { name } = table.dataset;
    const frame = table.closest(".scroll") ?? table;
    const rows = document.createElement("span");
    if (frame.classList.contains("tall")) rows.textContent = `${table.tBodies[0].rows.length.toLocaleString("en")} rows, scroll for more`;
    buttonsAfter(frame, [rows, button("CSV", `Save ${name} as CSV`, () => saveCsv(table))]);
  });
})();
