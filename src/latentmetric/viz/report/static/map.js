/* The map: points on a canvas, with zooming, moving, pointing and stepping by keyboard. */

(() => {
  const canvas = document.querySelector("canvas.map");
  if (!canvas) return;
  const data = JSON.parse(document.getElementById("report-data").textContent).map;
  const frame = canvas.parentElement;
  const card = frame.querySelector(".card");
  const chooser = document.querySelector(".highlight");
  const legend = document.querySelector(".legend");
  const context = canvas.getContext("2d");

  const COLOURS = 10;
  const LEGEND_CLASSES = 50;
  const REACH = 14;
  const MARGIN = 24;
  const count = data.code.length;
  const { row: nRows = 0, tested: nTested = 0 } = data.kinds;
  const isLatent = (point) => point >= nRows + nTested;
  const isTested = (point) => point >= nRows && !isLatent(point);
  const kindOf = (point) => (isLatent(point) ? "latent" : isTested(point) ? "tested" : "row");
  const predictedAs = (point) => (isTested(point) ? data.predicted[point - nRows] : data.code[point]);
  const isWrong = (point) => predictedAs(point) !== data.code[point];
  const layers = new Map(
    [...document.querySelectorAll(".layer")].map((box) => [box.value, box]),
  );
  const isShown = (point) =>
    layers.get("wrong").checked && !isLatent(point) ? isWrong(point) : layers.get(kindOf(point)).checked;
  let { x: xs, y: ys, wide, high } = data.views.projection;
  let home = 1;
  let least = 1;
  let highlighted = -1;
  let current = -1;
  let byKeyboard = false;
  let colours = {};
  let ratio = 1;

  /* A path around the origin for each shape. */
  const SHAPE_PATHS = [
    "M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z",
    "M-.9 -.9H.9V.9H-.9Z",
    "M0 -1.2L1.1 .8H-1.1Z",
    "M0 -1.3L1.3 0L0 1.3L-1.3 0Z",
    "M-.4 -1.2H.4V-.4H1.2V.4H.4V1.2H-.4V.4H-1.2V-.4H-.4Z",
  ];
  const crowd = count > 1500 ? 0.75 : 1;
  const SIZES = { row: 2.2 * crowd, tested: 3.4 * crowd, latent: 5 * crowd };
  const OPACITY = { row: 0.4, tested: 0.85, latent: 0.95 };
  const shapeOf = (code) => SHAPE_PATHS[data.looks[code][1]];

  const across = (point) => plot.view.left + xs[point] * plot.view.scale;
  const down = (point) => plot.view.top + ys[point] * plot.view.scale;

  const drawPoint = (pen, point, factor, faint) => {
    const [code, kind] = [data.code[point], kindOf(point)];
    pen.shape(shapeOf(code), across(point), down(point), SIZES[kind] * factor, {
      fill: colours[`class-${data.looks[code][0]}`],
      stroke: kind === "row" ? null : kind === "latent" ? colours.ink : colours.raised,
      width: kind === "latent" ? crowd : 0.7,
      alpha: faint ? 0.08 : OPACITY[kind],
    });
    if (!isWrong(point)) return;
    const style = { stroke: colours.wrong, width: 1.8, alpha: faint ? 0.15 : 1 };
    pen.shape(SHAPE_PATHS[0], across(point), down(point), 6 * factor, style);
  };

  const paint = (pen) => {
    const factor = Math.min(2, Math.max(1, Math.sqrt(plot.view.scale / home)));
    const { clientWidth: width, clientHeight: height } = canvas;
    for (const layer of [0, 1, 2]) {
      for (let point = 0; point < count; point += 1) {
        const chosen = highlighted < 0 || data.code[point] === highlighted;
        const [x, y] = [across(point), down(point)];
        if (layer !== (chosen ? 1 + isWrong(point) : 0) || !isShown(point)) continue;
        if (x < -20 || y < -20 || x > width + 20 || y > height + 20) continue;
        drawPoint(pen, point, factor, !chosen);
      }
    }
    if (current < 0) return;
    pen.shape(SHAPE_PATHS[0], across(current), down(current), 10, { stroke: colours.ink, width: 2.5 });
  };

  const draw = () => {
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    paint(canvasPen(context, ratio));
    tellOutside();
  };
  const refresh = onNextFrame(() => { draw(); placeCard(); });

  const outside = document.querySelector(".outside");
  const tellOutside = () => {
    let missing = 0;
    for (let point = 0; point < count; point += 1) {
      const [x, y] = [across(point), down(point)];
      if (isShown(point) && (x < 0 || y < 0 || x > canvas.clientWidth || y > canvas.clientHeight)) missing += 1;
    }
    outside.textContent = missing
      ? `${missing.toLocaleString("en")} ${missing === 1 ? "point lies" : "points lie"} outside this view; zoom out to see ${missing === 1 ? "it" : "them"}.`
      : "";
  };

  /* The first view may leave out outliers; zooming out far enough shows every point. */
  const measure = () => {
    const width = canvas.clientWidth - 2 * MARGIN;
    const height = canvas.clientHeight - 2 * MARGIN;
    home = Math.min(width / wide, height / high);
    const range = (values) => values.reduce(([low, top], value) => [Math.min(low, value), Math.max(top, value)], [0, 1]);
    const [[left, right], [top, bottom]] = [range(xs), range(ys)];
    least = Math.min(home, width / (right - left), height / (bottom - top)) / 2;
  };
  const showAll = () => {
    const width = canvas.clientWidth - 2 * MARGIN;
    const height = canvas.clientHeight - 2 * MARGIN;
    measure();
    Object.assign(plot.view, {
      scale: home,
      left: MARGIN + (width - wide * home) / 2,
      top: MARGIN + (height - high * home) / 2,
    });
    refresh();
  };

  const nearest = (x, y) => {
    let best = -1;
    let least = REACH * REACH;
    for (let point = 0; point < count; point += 1) {
      if ((highlighted >= 0 && data.code[point] !== highlighted) || !isShown(point)) continue;
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
    if (isLatent(point)) return `latent example ${data.latents[point - nRows - nTested].toLocaleString("en")}`;
    if (isTested(point)) return `tested ${data.names[point]}`;
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
    if (isWrong(point)) {
      const said = element("span", "wrong", "predicted as ");
      said.append(element("bdi", "", data.labels[predictedAs(point)]));
      about.append(said);
    }
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

  /* A page that scrolls under a resting mouse must not undo the choice of the keyboard. */
  let seen = null;
  const rests = (event) => {
    const before = seen ?? event;
    seen = event;
    return Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY) < 2;
  };
  const plot = zoomable(canvas, {
    limits: () => [least, 200 * home],
    onChange: refresh,
    onPoint: (here, event) => { if (!(byKeyboard && rests(event))) show(nearest(...here)); },
    onLeave: () => { if (!byKeyboard) show(-1); },
    onTap: (here) => show(nearest(...here)),
  });

  /* Steps through the points by class, latent examples before rows, and keeps them in view. */
  const order = Array.from({ length: count }, (_, point) => point).sort(
    (left, right) => data.code[left] - data.code[right] || isLatent(right) - isLatent(left) || left - right,
  );
  const step = (by) => {
    const open = order.filter((point) => isShown(point) && (highlighted < 0 || data.code[point] === highlighted));
    if (!open.length) return;
    const at = open.indexOf(current);
    const next = open[(at < 0 ? (by > 0 ? 0 : open.length - 1) : at + by + open.length) % open.length];
    const x = across(next);
    const y = down(next);
    if (x < 0 || y < 0 || x > canvas.clientWidth || y > canvas.clientHeight) {
      plot.move(canvas.clientWidth / 2 - x, canvas.clientHeight / 2 - y);
    }
    show(next, true);
  };
  onKeys(canvas, {
    ArrowLeft: () => plot.move(40, 0),
    ArrowRight: () => plot.move(-40, 0),
    ArrowUp: () => plot.move(0, 40),
    ArrowDown: () => plot.move(0, -40),
    "+": () => plot.zoom(1.4),
    "=": () => plot.zoom(1.4),
    "-": () => plot.zoom(1 / 1.4),
    0: showAll,
    n: () => step(1),
    p: () => step(-1),
    Escape: () => show(-1),
  });
  onZoomButtons("map", plot.zoom, showAll);
  layers.forEach((box) => box.addEventListener("change", () => { show(-1); refresh(); }));
  document.querySelector("select.view")?.addEventListener("change", (event) => {
    ({ x: xs, y: ys, wide, high } = data.views[event.target.value]);
    show(-1);
    fit();
    showAll();
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
      path.setAttribute("d", shapeOf(code));
      path.style.fill = `var(--class-${data.looks[code][0]})`;
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
    if (first || plot.view.scale === home) showAll();
    else plot.move((canvas.clientWidth - before[0]) / 2, (canvas.clientHeight - before[1]) / 2);
    draw(); // at once: a canvas of a new size is empty
  };

  const colour = () => {
    const classes = Array.from({ length: COLOURS }, (_, number) => `class-${number}`);
    colours = readColours([...classes, "raised", "ink", "wrong"]);
  };
  colour();
  drawLegend();
  theme.onChange(() => { colour(); refresh(); });
  drawers.set("map", () => {
    const pen = svgPen(canvas.clientWidth, canvas.clientHeight, colours.raised);
    paint(pen);
    return pen.svg();
  });
  new ResizeObserver(fit).observe(canvas);
  fit();
})();
