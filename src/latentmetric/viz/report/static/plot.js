/* What the map and the matrix share: a canvas with a view that is zoomed and moved. */

const zoomable = (canvas, { limits, onChange, onPoint, onLeave, onTap }) => {
  const view = { scale: 1, left: 0, top: 0 };
  const fingers = new Map();
  let travelled = 0;

  const zoom = (factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) => {
    const [least, most] = limits();
    const scale = Math.min(most, Math.max(least, view.scale * factor));
    view.left = x - ((x - view.left) * scale) / view.scale;
    view.top = y - ((y - view.top) * scale) / view.scale;
    view.scale = scale;
    onChange();
  };
  const move = (x, y) => {
    view.left += x;
    view.top += y;
    onChange();
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
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, position(event));
    if (fingers.size === 1) travelled = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const here = position(event);
    if (!fingers.has(event.pointerId)) {
      if (event.pointerType === "mouse") onPoint(here, event);
      return;
    }
    const before = fingers.get(event.pointerId);
    if (fingers.size === 2) {
      const then = spread();
      fingers.set(event.pointerId, here);
      const now = spread();
      if (then.length > 0) zoom(now.length / then.length, now.x, now.y);
      move(now.x - then.x, now.y - then.y);
      travelled = Infinity;
      return;
    }
    travelled += Math.hypot(here[0] - before[0], here[1] - before[1]);
    fingers.set(event.pointerId, here);
    if (travelled > 4) {
      canvas.classList.add("dragging");
      move(here[0] - before[0], here[1] - before[1]);
    }
  });
  const lift = (event) => {
    if (fingers.delete(event.pointerId) && event.type === "pointerup" && travelled <= 4) onTap(position(event));
    canvas.classList.remove("dragging");
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", () => { if (!fingers.size) onLeave(); });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * 0.0015), ...position(event));
  }, { passive: false });
  return { view, zoom, move };
};

const onKeys = (canvas, keys) => {
  canvas.addEventListener("keydown", (event) => {
    const modified = event.ctrlKey || event.metaKey || event.altKey;
    const act = modified ? null : keys[event.key] ?? keys[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  });
};

const onZoomButtons = (what, zoom, showAll) => {
  document.querySelectorAll(`[data-of="${what}"] [data-zoom]`).forEach((button) => {
    const factor = Number(button.dataset.zoom);
    button.addEventListener("click", () => (factor ? zoom(factor) : showAll()));
  });
};

/* Draws once for all changes before the next frame. */
const onNextFrame = (draw) => {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  };
};
