/* The theme follows the system until the reader chooses one. */
"use strict";

document.documentElement.dataset.script = "";
const reportData = JSON.parse(document.getElementById("report-data").textContent);

const element = (name, className, ...parts) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...parts);
  return made;
};
const svgElement = (name, attributes, ...parts) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  made.append(...parts);
  return made;
};

/* The way back to the contents is offered where they are out of sight. */
new IntersectionObserver(([contents]) => {
  document.querySelector(".to-top").classList.toggle("away", !contents.isIntersecting);
}).observe(document.querySelector("nav"));

const theme = (() => {
  const root = document.documentElement;
  const button = document.querySelector(".theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const listeners = [];

  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const remembered = () => {
    try { return window.localStorage.getItem("latentmetric-theme"); } catch { return null; }
  };
  const remember = (value) => {
    try { window.localStorage.setItem("latentmetric-theme", value); } catch { /* not for files */ }
  };
  const update = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Use the ${isDark() ? "light" : "dark"} theme`);
    listeners.forEach((listener) => listener());
  };

  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember(root.dataset.theme);
    update();
  });
  system.addEventListener("change", update);
  if (["light", "dark"].includes(remembered())) root.dataset.theme = remembered();
  update();
  return { onChange: (listener) => listeners.push(listener) };
})();

/* Shows in every picture element its part of the one sheet that holds all pictures. */
const showPicture = (() => {
  const style = getComputedStyle(document.documentElement);
  const columns = Number(style.getPropertyValue("--columns"));
  const lines = Number(style.getPropertyValue("--lines"));
  const along = (index, count) => (count > 1 ? (100 * index) / (count - 1) : 0);

  return (element, number) => {
    const across = along(number % columns, columns);
    const down = along(Math.floor(number / columns), lines);
    element.style.backgroundPosition = `${across}% ${down}%`;
  };
})();

document.querySelectorAll("[data-picture]").forEach((element) => {
  showPicture(element, Number(element.dataset.picture));
});

/* Sorts a table by the clicked heading, hides lines that do not match the search, and shows where
   a table goes on beyond the edge of the screen. */
document.querySelectorAll("table.sortable").forEach((table) => {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const value = (line, column) => Number.parseFloat(line.cells[column].dataset.value || "NaN");

  const sort = (column, descending) => {
    const sign = descending ? -1 : 1;
    const lines = [...body.rows].map((line) => [value(line, column), line]);
    lines.sort(([left], [right]) => {
      if (Number.isNaN(left) || Number.isNaN(right)) return Number.isNaN(left) - Number.isNaN(right);
      return sign * (left - right);
    });
    body.append(...lines.map(([, line]) => line));
    heads.forEach((head, index) => {
      if (index === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  };

  heads.forEach((head, column) => {
    head.querySelector("button")?.addEventListener("click", () => {
      const sorted = head.getAttribute("aria-sort");
      sort(column, sorted ? sorted === "ascending" : head.classList.contains("number"));
    });
  });
});

document.querySelectorAll("input.filter").forEach((input) => {
  const lines = [...document.querySelector("table.sortable").tBodies[0].rows];
  input.addEventListener("input", () => {
    const wanted = input.value.toLocaleLowerCase();
    lines.forEach((line) => {
      line.hidden = !line.cells[0].textContent.toLocaleLowerCase().includes(wanted);
    });
  });
});

document.querySelectorAll(".table").forEach((frame) => {
  const scroller = frame.querySelector(".scroll");
  const update = () => {
    const left = scroller.scrollLeft;
    frame.classList.toggle("more-left", left > 1);
    frame.classList.toggle("more-right", left + scroller.clientWidth < scroller.scrollWidth - 1);
  };
  scroller.addEventListener("scroll", update, { passive: true });
  new ResizeObserver(update).observe(scroller);
  new ResizeObserver(update).observe(scroller.firstElementChild);
});

/* Shows one class of the gallery at a time. */
document.querySelectorAll(".chooser").forEach((chooser) => {
  const choose = () => {
    document.querySelectorAll(".gallery-class").forEach((part) => {
      part.classList.toggle("chosen", part.dataset.class === chooser.value);
    });
  };
  document.querySelectorAll(".step").forEach((button) => {
    button.addEventListener("click", () => {
      const count = chooser.options.length;
      chooser.selectedIndex = (chooser.selectedIndex + Number(button.dataset.step) + count) % count;
      choose();
    });
  });
  chooser.addEventListener("change", choose);
  choose();
});

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
    [copy, ...copy.querySelectorAll("*")].forEach((element, index) => {
      const style = getComputedStyle(originals[index]);
      STYLES.forEach((name) => element.setAttribute(name, style.getPropertyValue(name)));
      element.removeAttribute("class");
    });
    copy.setAttribute("width", 2 * wide);
    copy.setAttribute("height", 2 * high);
    copy.prepend(svgElement("rect", { width: wide, height: high, fill: colour("paper") }));
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
    const columns = heads.map((head, index) => index).filter((index) => !heads[index].classList.contains("bar-cell"));
    const lines = [...table.rows].filter((line) => !line.hidden);
    const text = lines.map((line) => columns.map((index) => cellText(line.cells[index])).join(",")).join("\r\n");
    save(new Blob(["\ufeff", text, "\r\n"], { type: "text/csv" }), fileName(table.dataset.name, "csv"));
  };

  const button = (text, said, act) => {
    const made = element("button", "", text);
    made.type = "button";
    made.setAttribute("aria-label", said);
    made.addEventListener("click", act);
    return made;
  };

  document.querySelectorAll("figure[data-name]").forEach((figure) => {
    const { name } = figure.dataset;
    figure.firstElementChild.after(element("div", "exports",
      button("PNG", `Save ${name} as PNG`, () => savePng(figure)),
      button("SVG", `Save ${name} as SVG`, () => saveSvg(figure))));
  });
  document.querySelectorAll("table[data-name]").forEach((table) => {
    const { name } = table.dataset;
    const frame = table.closest(".scroll") ?? table;
    const rows = `${table.tBodies[0].rows.length.toLocaleString("en")} rows, scroll for more`;
    frame.after(element("div", "exports",
      element("span", "", frame.classList.contains("tall") ? rows : ""),
      button("CSV", `Save ${name} as CSV`, () => saveCsv(table))));
  });
})();
