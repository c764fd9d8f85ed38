/* Pens with one set of strokes: one draws on a canvas, the other writes SVG of the same drawing. */

const canvasPen = (context, ratio) => {
  const at = (x, y, size = 1) =>
    context.setTransform(ratio * size, 0, 0, ratio * size, ratio * x, ratio * y);
  const paths = new Map();
  const made = (path) => {
    if (!paths.has(path)) paths.set(path, new Path2D(path));
    return paths.get(path);
  };
  return {
    clip(x, y, width, height, draw) {
      context.save();
      at(0, 0);
      context.beginPath();
      context.rect(x, y, width, height);
      context.clip();
      draw();
      context.restore();
    },
    shape(path, x, y, size, { fill, stroke, width = 1, alpha = 1 }) {
      at(x, y, size);
      context.globalAlpha = alpha;
      if (fill) { context.fillStyle = fill; context.fill(made(path)); }
      if (stroke) { context.lineWidth = width / size; context.strokeStyle = stroke; context.stroke(made(path)); }
      context.globalAlpha = 1;
    },
    rectangle(x, y, width, height, fill, alpha = 1) {
      at(0, 0);
      context.globalAlpha = alpha;
      context.fillStyle = fill;
      context.fillRect(x, y, width, height);
      context.globalAlpha = 1;
    },
    text(x, y, words, { fill, size = 12, anchor = "start", turned = false }) {
      at(x, y);
      if (turned) context.rotate(-Math.PI / 4);
      context.font = `${size}px ${FONT}`;
      context.textAlign = { start: "left", middle: "center", end: "right" }[anchor];
      context.fillStyle = fill;
      context.fillText(words, 0, 0);
    },
  };
};

const FONT = getComputedStyle(document.body).fontFamily;

const escaped = (text) =>
  String(text).replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);

const svgPen = (width, height, paper) => {
  const short = (value) => String(Math.round(value * 100) / 100);
  const written = [`<rect width="${width}" height="${height}" fill="${paper}"/>`];
  let clips = 0;
  return {
    clip(x, y, wide, high, draw) {
      clips += 1;
      written.push(`<clipPath id="clip${clips}"><rect x="${short(x)}" y="${short(y)}" width="${short(wide)}" height="${short(high)}"/></clipPath><g clip-path="url(#clip${clips})">`);
      draw();
      written.push("</g>");
    },
    shape(path, x, y, size, { fill, stroke, width: line = 1, alpha = 1 }) {
      written.push(
        `<path d="${path}" transform="translate(${short(x)} ${short(y)}) scale(${short(size)})" fill="${fill ?? "none"}"`
        + (stroke ? ` stroke="${stroke}" stroke-width="${short(line / size)}"` : "")
        + (alpha < 1 ? ` opacity="${alpha}"` : "") + "/>",
      );
    },
    rectangle(x, y, wide, high, fill, alpha = 1) {
      written.push(
        `<rect x="${short(x)}" y="${short(y)}" width="${short(wide)}" height="${short(high)}" fill="${fill}"`
        + (alpha < 1 ? ` opacity="${alpha.toFixed(3)}"` : "") + "/>",
      );
    },
    text(x, y, words, { fill, size = 12, anchor = "start", turned = false }) {
      const turn = turned ? ` transform="rotate(-45 ${short(x)} ${short(y)})"` : "";
      written.push(
        `<text x="${short(x)}" y="${short(y)}" fill="${fill}" font-size="${size}" font-family="${escaped(FONT)}" text-anchor="${anchor}"${turn}>${escaped(words)}</text>`,
      );
    },
    svg: () =>
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${written.join("")}</svg>`,
  };
};

/* The colours of the page's theme by the names of its variables. */
const readColours = (names) => {
  const probe = document.createElement("span");
  document.body.append(probe);
  const read = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const found = Object.fromEntries(names.map((name) => [name, read(name)]));
  probe.remove();
  return found;
};
