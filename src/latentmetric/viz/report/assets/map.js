/* The map: points on a canvas, with zooming, moving, pointing and stepping by keyboard. */

(() => {
  const canvas = document.querySelector("canvas.map");
  if (!canvas) return;
  const data = JSON.parse(document.getElementById("report-data").textContent).map;
  const frame = canvas.parentElement;
  const card = frame.querySelector(".card");
  const chooser = document.querySelector(".highlight");
  const legend = document.querySelector(".legend");
  const pen = canvas.getContext("2d");

  const COLOURS = 8;
  const SHAPES = 5;
  const LEGEND_CLASSES = COLOURS * SHAPES;
  const REACH = 14;
  const MARGIN = 24;
  const count = data.x.length;
  const isLatent = (point) => point >= data.rows;
  const view = { scale: 1, left: 0, top: 0 };
  let home = 1;
  let highlighted = -1;
  let current = -1;
  let byKeyboard = false;
  let colours = [];

  /* A path around the origin for each shape; the code of the class picks its colour and shape. */
  const SHAPE_PATHS = [
    "M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z",
    "M-.9 -.9H.9V.9H-.9Z",
    "M0 -1.2L1.1 .8H-1.1Z",
    "M0 -1.3L1.3 0L0 1.3L-1.3 0Z",
    "M-.4 -1.2H.4V-.4H1.2V.4H.4V1.2H-.4V.4H-1.2V-.4H-.4Z",
  ];
  const shapes = SHAPE_PATHS.map((path) => new Path2D(path));
  const colourOf = (code) => code % COLOURS;
  const shapeOf = (code) => Math.floor(code / COLOURS + code) % SHAPES;

  const readColours = () => {
    const probe = document.createElement("span");
    frame.append(probe);
    const read = (name) => {
      probe.style.color = `var(${name})`;
      return getComputedStyle(probe).color;
    };
    colours = Array.from({ length: COLOURS }, (_, number) => read(`--class-${number}`));
    colours.paper = read("--raised");
    colours.ink = read("--ink");
    probe.remove();
  };

  const across = (point) => view.left + data.x[point] * view.scale;
  const down = (point) => view.top + data.y[point] * view.scale;

  const drawPoint = (point, factor) => {
    const code = data.code[point];
    const size = (isLatent(point) ? 4.6 : 2.1) * factor;
    pen.setTransform(new DOMMatrix([ratio * size, 0, 0, ratio * size, ratio * across(point), ratio * down(point)]));
    pen.fillStyle = colours[colourOf(code)];
    pen.fill(shapes[shapeOf(code)]);
    if (isLatent(point)) {
      pen.lineWidth = 0.9 / size;
      pen.strokeStyle = colours.paper;
      pen.stroke(shapes[shapeOf(code)]);
    }
  };

  let ratio = 1;
  const draw = () => {
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    const factor = Math.min(2, Math.max(1, Math.sqrt(view.scale / home)));
    for (const front of [false, true]) {
      for (let point = 0; point < count; point += 1) {
        const chosen = highlighted < 0 || data.code[point] === highlighted;
        if (highlighted >= 0 && chosen !== front) continue;
        if (highlighted < 0 && front) continue;
        pen.globalAlpha = chosen ? (isLatent(point) ? 0.95 : 0.6) : 0.1;
        drawPoint(point, factor);
      }
    }
    pen.globalAlpha = 1;
    if (current >= 0) {
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.beginPath();
      pen.arc(across(current), down(current), 10, 0, 2 * Math.PI);
      pen.lineWidth = 2.5;
      pen.strokeStyle = colours.ink;
      pen.stroke();
    }
  };

  let waiting = false;
  const refresh = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); placeCard(); });
  };

  const largest = (values) => values.reduce((most, value) => Math.max(most, value), 1);
  const wide = largest(data.x);
  const high = largest(data.y);

  const showAll = () => {
    const width = canvas.clientWidth - 2 * MARGIN;
    const height = canvas.clientHeight - 2 * MARGIN;
    home = Math.min(width / wide, height / high);
    view.scale = home;
    view.left = MARGIN + (width - wide * home) / 2;
    view.top = MARGIN + (height - high * home) / 2;
    refresh();
  };

  const zoom = (factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) => {
    const scale = Math.min(200 * home, Math.max(0.5 * home, view.scale * factor));
    view.left = x - ((x - view.left) * scale) / view.scale;
    view.top = y - ((y - view.top) * scale) / view.scale;
    view.scale = scale;
    refresh();
  };

  const move = (x, y) => {
    view.left += x;
    view.top += y;
    refresh();
  };

  const nearest = (x, y) => {
    let best = -1;
    let least = REACH * REACH;
    for (let point = 0; point < count; point += 1) {
      if (highlighted >= 0 && data.code[point] !== highlighted) continue;
      const away = (across(point) - x) ** 2 + (down(point) - y) ** 2;
      if (away <= least) { least = away; best = point; }
    }
    return best;
  };

  const element = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  const picture = (number) => {
    if (number < 0) return [];
    const made = element("i", "picture");
    showPicture(made, number);
    return [made];
  };

  const nameOf = (point) => {
    if (isLatent(point)) return `latent example ${data.latents[point - data.rows].toLocaleString("en")}`;
    return data.training ? `training ${data.names[point]}` : data.names[point];
  };

  const neighbour = ([latent, distance]) => {
    const [code, number] = data.known[latent];
    const line = element("li");
    line.append(
      ...picture(number),
      element("bdi", "label", data.labels[code]),
      element("span", "distance", distance.toLocaleString("en", { maximumSignificantDigits: 3 })),
    );
    return line;
  };

  const fillCard = (point) => {
    const about = element("div", "about");
    about.append(element("bdi", "label", data.labels[data.code[point]]), element("bdi", "name", nameOf(point)));
    const top = element("div", "framed");
    top.append(...picture(data.picture[point]), about);
    card.replaceChildren(top);
    const near = data.near?.[point] ?? [];
    if (!near.length) return;
    const list = element("ol", "neighbors");
    list.append(...near.map(neighbour));
    const below = element("div", "card-near", "Nearest latent examples");
    below.append(list);
    card.append(below);
  };

  const placeCard = () => {
    if (current < 0) return;
    const x = across(current);
    const y = down(current);
    const width = card.offsetWidth;
    const height = card.offsetHeight;
    const left = x + 18 + width < frame.clientWidth ? x + 18 : x - 18 - width;
    const top = Math.min(y - 20, frame.clientHeight - height - 8);
    card.style.left = `${Math.max(8, Math.min(left, frame.clientWidth - width - 8))}px`;
    card.style.top = `${Math.max(8, top)}px`;
  };

  const show = (point, keyboard = false) => {
    byKeyboard = keyboard;
    if (point === current) return;
    current = point;
    card.hidden = point < 0;
    if (point >= 0) {
      fillCard(point);
      placeCard();
    }
    refresh();
  };

  const highlight = (code) => {
    highlighted = code;
    chooser.value = String(code);
    legend.querySelectorAll("button").forEach((button) => {
      button.setAttribute("aria-pressed", String(Number(button.dataset.class) === code));
    });
    if (current >= 0 && code >= 0 && data.code[current] !== code) show(-1);
    refresh();
  };

  /* Two fingers zoom, one finger or the mouse moves, a tap selects. */
  const fingers = new Map();
  let travelled = 0;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const spread = () => {
    const [[x, y], [a, b]] = [...fingers.values()];
    return { length: Math.hypot(x - a, y - b), x: (x + a) / 2, y: (y + b) / 2 };
  };
  /* A page that scrolls under a resting mouse must not undo the choice of the keyboard. */
  let seen = null;
  const rests = (event) => {
    const before = seen ?? event;
    seen = event;
    return Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY) < 2;
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, place(event));
    if (fingers.size === 1) travelled = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const here = place(event);
    if (!fingers.has(event.pointerId)) {
      if (event.pointerType === "mouse" && !(byKeyboard && rests(event))) show(nearest(...here));
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
    if (fingers.delete(event.pointerId) && event.type === "pointerup" && travelled <= 4) {
      show(nearest(...place(event)));
    }
    canvas.classList.remove("dragging");
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", () => { if (!fingers.size && !byKeyboard) show(-1); });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * 0.0015), ...place(event));
  }, { passive: false });

  /* Steps through the points by class, latent examples before rows, and keeps them in view. */
  const order = Array.from({ length: count }, (_, point) => point).sort(
    (left, right) => data.code[left] - data.code[right] || isLatent(right) - isLatent(left) || left - right,
  );
  const step = (by) => {
    const open = highlighted < 0 ? order : order.filter((point) => data.code[point] === highlighted);
    if (!open.length) return;
    const at = open.indexOf(current);
    const next = open[(at < 0 ? (by > 0 ? 0 : open.length - 1) : at + by + open.length) % open.length];
    const x = across(next);
    const y = down(next);
    if (x < 0 || y < 0 || x > canvas.clientWidth || y > canvas.clientHeight) {
      move(canvas.clientWidth / 2 - x, canvas.clientHeight / 2 - y);
    }
    show(next, true);
  };
  const keys = {
    ArrowLeft: () => move(40, 0),
    ArrowRight: () => move(-40, 0),
    ArrowUp: () => move(0, 40),
    ArrowDown: () => move(0, -40),
    "+": () => zoom(1.4),
    "=": () => zoom(1.4),
    "-": () => zoom(1 / 1.4),
    0: showAll,
    n: () => step(1),
    p: () => step(-1),
    Escape: () => show(-1),
  };
  canvas.addEventListener("keydown", (event) => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? null : keys[event.key] ?? keys[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  });

  document.querySelectorAll("[data-zoom]").forEach((button) => {
    const factor = Number(button.dataset.zoom);
    button.addEventListener("click", () => (factor ? zoom(factor) : showAll()));
  });
  chooser.addEventListener("change", () => highlight(Number(chooser.value)));

  const drawLegend = () => {
    if (data.labels.length > LEGEND_CLASSES) return;
    const namespace = "http://www.w3.org/2000/svg";
    data.labels.forEach((label, code) => {
      const button = element("button");
      button.type = "button";
      button.dataset.class = String(code);
      button.setAttribute("aria-pressed", "false");
      const mark = document.createElementNS(namespace, "svg");
      mark.setAttribute("viewBox", "-1.4 -1.4 2.8 2.8");
      mark.setAttribute("aria-hidden", "true");
      const path = document.createElementNS(namespace, "path");
      path.setAttribute("d", SHAPE_PATHS[shapeOf(code)]);
      path.style.fill = `var(--class-${colourOf(code)})`;
      mark.append(path);
      button.append(mark, element("bdi", "", label));
      button.addEventListener("click", () => highlight(highlighted === code ? -1 : code));
      const line = element("li");
      line.append(button);
      legend.append(line);
    });
  };

  const fit = () => {
    const wanted = 2 * MARGIN + (canvas.clientWidth * high) / wide;
    canvas.style.height = `${Math.round(Math.min(560, Math.max(300, wanted)))}px`;
    const first = !canvas.dataset.ready;
    const before = [canvas.width / ratio, canvas.height / ratio];
    ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(canvas.clientWidth * ratio);
    canvas.height = Math.round(canvas.clientHeight * ratio);
    canvas.dataset.ready = "yes";
    if (first || view.scale === home) showAll();
    else move((canvas.clientWidth - before[0]) / 2, (canvas.clientHeight - before[1]) / 2);
    draw(); // at once: a canvas of a new size is empty
  };

  readColours();
  drawLegend();
  theme.onChange(() => { readColours(); refresh(); });
  new ResizeObserver(fit).observe(canvas);
  fit();
})();
