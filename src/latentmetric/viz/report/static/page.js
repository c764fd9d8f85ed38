/* Pictures, tables, the gallery, the confusion matrix, and buttons that save what is seen. */
"use strict";

document.documentElement.dataset.script = "";

const element = (name, className, ...parts) => {
  const made = document.createElement(name);
  made.className = className;
  made.append(...parts);
  return made;
};
const svgElement = (name, attributes) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  return made;
};
const button = (act, said, ...parts) => {
  const made = element("button", "", ...parts);
  made.type = "button";
  if (said) made.setAttribute("aria-label", said);
  made.addEventListener("click", act);
  return made;
};

/* Every picture is a part of the one sheet that holds all of them. */
const showPicture = (picture, number) => {
  const style = getComputedStyle(document.documentElement);
  const [columns, lines] = ["--columns", "--lines"].map((name) => Number(style.getPropertyValue(name)));
  const across = (100 * (number % columns)) / Math.max(1, columns - 1);
  const down = (100 * Math.floor(number / columns)) / Math.max(1, lines - 1);
  picture.style.backgroundPosition = `${across}% ${down}%`;
  return picture;
};
document.querySelectorAll("[data-picture]").forEach((one) => showPicture(one, Number(one.dataset.picture)));

/* A click on a heading sorts the table; the search hides lines that do not match. */
document.querySelectorAll("table.sortable").forEach((table) => {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const sort = (head, column) => {
    const sorted = head.getAttribute("aria-sort");
    const descending = sorted ? sorted === "ascending" : head.classList.contains("number");
    const value = (line) => Number.parseFloat(line.cells[column].dataset.value || "NaN");
    const lines = [...body.rows].sort((left, right) => {
      const [one, other] = [value(left), value(right)];
      if (Number.isNaN(one) || Number.isNaN(other)) return Number.isNaN(one) - Number.isNaN(other);
      return descending ? other - one : one - other;
    });
    body.append(...lines);
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  };
  heads.forEach((head, column) => {
    head.querySelector("button")?.addEventListener("click", () => sort(head, column));
  });
  document.querySelector("input.filter")?.addEventListener("input", ({ target }) => {
    const wanted = target.value.toLocaleLowerCase();
    [...body.rows].forEach((line) => {
      line.hidden = !line.cells[0].textContent.toLocaleLowerCase().includes(wanted);
    });
  });
});

/* The gallery shows one class at a time. */
document.querySelectorAll(".chooser").forEach((chooser) => {
  const choose = () => {
    document.querySelectorAll(".gallery-class").forEach((part) => {
      part.classList.toggle("chosen", part.dataset.class === chooser.value);
    });
  };
  document.querySelectorAll(".step").forEach((step) => {
    step.addEventListener("click", () => {
      const count = chooser.options.length;
      chooser.selectedIndex = (chooser.selectedIndex + Number(step.dataset.step) + count) % count;
      choose();
    });
  });
  chooser.addEventListener("change", choose);
  choose();
});

/* The words of the matrix tell what a cell means that is pointed at or reached by arrow keys. */
document.querySelectorAll("svg.matrix").forEach((matrix) => {
  const cells = [...matrix.querySelectorAll(".cell")];
  let current = null;
  const show = (cell) => {
    if (!cell) return;
    current?.classList.remove("chosen");
    cell.classList.add("chosen");
    current = cell;
    document.querySelector(".matrix-words").textContent = cell.querySelector("title").textContent;
  };
  matrix.addEventListener("pointerover", ({ target }) => show(target.closest(".cell")));
  matrix.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    show(cells[Math.max(0, Math.min(cells.length - 1, cells.indexOf(current) + by))]);
  });
});

/* Buttons save figures as PNG and SVG, tables as CSV. Nothing leaves the page. */
(() => {
  const STYLES = [
    "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "font-family", "font-size",
    "font-weight", "text-anchor", "vector-effect", "opacity", "display",
  ];

  const save = (blob, name) => {
    const title = document.title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 40);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${title.replace(/^-|-$/g, "") || "report"}-${name}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };

  /* The style sheet stays behind, so every element takes its computed style along. */
  const svgOf = (figure) => {
    const drawn = figure.querySelector("svg");
    const copy = drawn.cloneNode(true);
    const originals = [drawn, ...drawn.querySelectorAll("*")];
    [copy, ...copy.querySelectorAll("*")].forEach((part, index) => {
      const style = getComputedStyle(originals[index]);
      STYLES.forEach((name) => part.setAttribute(name, style.getPropertyValue(name)));
      if (style.transform !== "none") part.setAttribute("transform", style.transform);
      ["class", "style"].forEach((name) => part.removeAttribute(name));
    });
    const { x, y, width, height } = drawn.viewBox.baseVal;
    copy.prepend(svgElement("rect", { x, y, width, height, fill: getComputedStyle(document.body).backgroundColor }));
    const box = drawn.getBoundingClientRect();
    ["width", "height"].forEach((name) => copy.setAttribute(name, box[name]));
    return new XMLSerializer().serializeToString(copy);
  };
  const savePng = (figure, name) => {
    const image = new Image();
    image.addEventListener("load", () => {
      const canvas = document.createElement("canvas");
      Object.assign(canvas, { width: 2 * image.width, height: 2 * image.height });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(blob, name), "image/png");
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
  const csvOf = (table) => {
    const bars = [...table.tHead.rows[0].cells].map((head) => head.classList.contains("bar-cell"));
    const lines = [...table.rows].filter((line) => !line.hidden);
    const written = lines.map((line) => [...line.cells].filter((_, column) => !bars[column]).map(cellText).join(","));
    return new Blob(["\ufeff", written.join("\r\n"), "\r\n"], { type: "text/csv" });
  };

  document.querySelectorAll("figure[data-name]").forEach((figure) => {
    const { name } = figure.dataset;
    const saveSvg = () => save(new Blob([svgOf(figure)], { type: "image/svg+xml" }), `${name}.svg`);
    figure.firstElementChild.after(element("div", "exports",
      button(() => savePng(figure, `${name}.png`), `Save ${name} as PNG`, "PNG"),
      button(saveSvg, `Save ${name} as SVG`, "SVG")));
  });
  document.querySelectorAll("table[data-name]").forEach((table) => {
    const { name } = table.dataset;
    const frame = table.closest(".scroll") ?? table;
    const count = table.tBodies[0].rows.length.toLocaleString("en");
    frame.after(element("div", "exports",
      element("span", "", frame.classList.contains("tall") ? `${count} rows, scroll for more` : ""),
      button(() => save(csvOf(table), `${name}.csv`), `Save ${name} as CSV`, "CSV")));
  });
})();
