/* Drawings on a canvas: they zoom, move, follow the theme, and can be saved as SVG. */

const FONT = getComputedStyle(document.body).fontFamily;

const rectangle = (width, height) => `M0 0H${width}V${height}H0Z`;

/* The colours of the page's theme by the names of its variables. */
const colour = (() => {
  const known = new Map();
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  theme.onChange(() => known.clear());
  return (name) => {
    if (!known.has(name)) {
      probe.style.color = `var(--${name})`;
      known.set(name, getComputedStyle(probe).color);
    }
    return known.get(name);
  };
})();

/* Two pens with the same strokes: one draws on a canvas, the other makes SVG. */
const canvasPen = (context, ratio) => {
  const paths = new Map();
  const at = (x, y, size = 1) => context.setTransform(ratio * size, 0, 0, ratio * size, ratio * x, ratio * y);
  const made = (path) => {
    if (!paths.has(path)) paths.set(path, new Path2D(path));
    return paths.get(path);
  };
  return {
    clip(x, y, width, height, draw) {
      context.save();
      at(x, y);
      context.clip(made(rectangle(width, height)));
      draw();
      context.restore();
    },
    shape(path, x, y, size, { fill, stroke, width = 1, alpha = 1 }) {
      at(x, y, size);
      Object.assign(context, { globalAlpha: alpha, fillStyle: fill, strokeStyle: stroke, lineWidth: width / size });
      if (fill) context.fill(made(path));
      if (stroke) context.stroke(made(path));
      context.globalAlpha = 1;
    },
    text(x, y, words, { fill, size, anchor = "start", turned = false }) {
      at(x, y);
      if (turned) context.rotate(-Math.PI / 4);
      const textAlign = anchor === "middle" ? "center" : anchor;
      Object.assign(context, { font: `${size}px ${FONT}`, textAlign, fillStyle: fill });
      context.fillText(words, 0, 0);
    },
  };
};

const svgPen = (width, height, paper) => {
  const root = svgElement("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  const place = (x, y) => `translate(${x.toFixed(2)} ${y.toFixed(2)})`;
  let parent = root;
  const add = (...part) => parent.appendChild(svgElement(...part));
  const pen = {
    clip(x, y, wide, high, draw) {
      const id = `clip${root.childElementCount}`;
      add("clipPath", { id }).append(svgElement("path", { d: rectangle(wide, high), transform: place(x, y) }));
      parent = add("g", { "clip-path": `url(#${id})` });
      draw();
      parent = root;
    },
    shape(path, x, y, size, { fill = "none", stroke = "none", width: line = 1, alpha = 1 }) {
      const transform = `${place(x, y)} scale(${size.toFixed(2)})`;
      add("path", { d: path, transform, fill, stroke, "stroke-width": line / size, opacity: alpha.toFixed(3) });
    },
    text(x, y, words, { fill, size, anchor = "start", turned = false }) {
      const transform = `${place(x, y)} rotate(${turned ? -45 : 0})`;
      add("text", { transform, fill, "font-size": size, "font-family": FONT, "text-anchor": anchor }, words);
    },
    svg: () => new XMLSerializer().serializeToString(root),
  };
  pen.shape(rectangle(width, height), 0, 0, 1, { fill: paper });
  return pen;
};

/* A canvas that `paint` draws on, with a view that is zoomed and moved. */
const drawing = (canvas, { paint, paper, limits, showAll, keys, onChange, onPoint, onLeave, onTap }) => {
  const context = canvas.getContext("2d");
  const view = { scale: 1, left: 0, top: 0 };
  const fingers = new Map();
  let ratio = 1;
  let travelled = 0;
  let waiting = false;

  const draw = () => {
    waiting = false;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    paint(canvasPen(context, ratio));
  };
  const refresh = () => {
    if (!waiting) requestAnimationFrame(draw);
    waiting = true;
  };
  const resize = () => {
    ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(canvas.clientWidth * ratio);
    canvas.height = Math.round(canvas.clientHeight * ratio);
  };
  const changed = () => {
    onChange?.();
    refresh();
  };
  const zoom = (factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) => {
    const [least, most] = limits();
    const scale = Math.min(most, Math.max(least, view.scale * factor));
    view.left = x - ((x - view.left) * scale) / view.scale;
    view.top = y - ((y - view.top) * scale) / view.scale;
    view.scale = scale;
    changed();
  };
  const move = (x, y) => {
    view.left += x;
    view.top += y;
    changed();
  };
  const position = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const spread = () => {
    const [[x, y], [a, b]] = [...fingers.values()];
    return { length: Math.hypot(x - a, y - b), x: (x + a) / 2, y: (y + b) / 2 };
  };

  /* Two fingers zoom, one finger or the mouse moves, a tap selects. */
  const on = (type, act, options) => canvas.addEventListener(type, act, options);
  on("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, position(event));
    if (fingers.size === 1) travelled = 0;
  });
  on("pointermove", (event) => {
    const here = position(event);
    const before = fingers.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse") onPoint(here, event);
      return;
    }
    const then = fingers.size === 2 ? spread() : null;
    fingers.set(event.pointerId, here);
    if (then) {
      const now = spread();
      if (then.length > 0) zoom(now.length / then.length, now.x, now.y);
      move(now.x - then.x, now.y - then.y);
      travelled = Infinity;
      return;
    }
    const [x, y] = [here[0] - before[0], here[1] - before[1]];
    travelled += Math.hypot(x, y);
    if (travelled <= 4) return;
    canvas.classList.add("dragging");
    move(x, y);
  });
  const lift = (event) => {
    if (fingers.delete(event.pointerId) && event.type === "pointerup" && travelled <= 4) onTap(position(event));
    canvas.classList.remove("dragging");
  };
  on("pointerup", lift);
  on("pointercancel", lift);
  on("pointerleave", () => { if (!fingers.size) onLeave?.(); });
  on("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * 0.0015), ...position(event));
  }, { passive: false });

  const [closer, farther] = [() => zoom(1.4), () => zoom(1 / 1.4)];
  const allKeys = { "+": closer, "=": closer, "-": farther, 0: () => showAll(), ...keys };
  on("keydown", (event) => {
    const modified = event.ctrlKey || event.metaKey || event.altKey;
    const act = allKeys[event.key] ?? allKeys[event.key.toLowerCase()];
    if (modified || !act) return;
    event.preventDefault();
    act();
  });
  document.querySelectorAll(`[data-of="${canvas.className}"] [data-zoom]`).forEach((button) => {
    const factor = Number(button.dataset.zoom);
    button.addEventListener("click", () => (factor ? zoom(factor) : showAll()));
  });

  theme.onChange(refresh);
  drawers.set(canvas.closest("figure").dataset.name, () => {
    const pen = svgPen(canvas.clientWidth, canvas.clientHeight, colour(paper));
    paint(pen);
    return pen.svg();
  });
  return { view, zoom, move, draw, refresh, resize };
};
