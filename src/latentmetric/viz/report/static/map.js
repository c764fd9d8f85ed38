/* The map: points on a canvas, with zooming, moving, pointing and stepping by keyboard. */

(() => {
  const canvas = document.querySelector("canvas.map");
  if (!canvas) return;
  const data = reportData.map;
  const frame = canvas.parentElement;
  const card = frame.querySelector(".card");
  const chooser = document.querySelector(".highlight");
  const legend = document.querySelector(".legend");
  const outside = document.querySelector(".outside");

  const LEGEND_CLASSES = 50;
  const REACH = 14;
  const MARGIN = 24;
  const points = data.code.map((_, point) => point);
  const { row: nRows = 0, tested: nTested = 0 } = data.kinds;
  const isLatent = (point) => point >= nRows + nTested;
  const isTested = (point) => point >= nRows && !isLatent(point);
  const kindOf = (point) => (isLatent(point) ? "latent" : isTested(point) ? "tested" : "row");
  const predictedAs = (point) => (isTested(point) ? data.predicted[point - nRows] : data.code[point]);
  const isWrong = (point) => predictedAs(point) !== data.code[point];
  const layers = new Map([...document.querySelectorAll(".layer")].map((box) => [box.value, box]));
  const isShown = (point) =>
    layers.get("wrong").checked && !isLatent(point) ? isWrong(point) : layers.get(kindOf(point)).checked;
  const isChosen = (point) => highlighted < 0 || data.code[point] === highlighted;
  let { x: xs, y: ys, wide, high } = data.views.projection;
  let home = 1;
  let least = 1;
  let highlighted = -1;
  let current = -1;
  let byKeyboard = false;

  /* A path around the origin for each shape. */
  const SHAPE_PATHS = [
    "M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z",
    "M-.9 -.9H.9V.9H-.9Z",
    "M0 -1.2L1.1 .8H-1.1Z",
    "M0 -1.3L1.3 0L0 1.3L-1.3 0Z",
    "M-.4 -1.2H.4V-.4H1.2V.4H.4V1.2H-.4V.4H-1.2V-.4H-.4Z",
  ];
  const crowd = points.length > 1500 ? 0.75 : 1;
  const SIZES = { row: 2.2 * crowd, tested: 3.4 * crowd, latent: 5 * crowd };
  const OPACITY = { row: 0.4, tested: 0.85, latent: 0.95 };
  const shapeOf = (code) => SHAPE_PATHS[data.looks[code][1]];

  const across = (point) => plot.view.left + xs[point] * plot.view.scale;
  const down = (point) => plot.view.top + ys[point] * plot.view.scale;
  const isInside = (point, around = 0) => {
    const [x, y] = [across(point), down(point)];
    return x >= -around && y >= -around && x <= canvas.clientWidth + around && y <= canvas.clientHeight + around;
  };

  const drawPoint = (pen, point, factor) => {
    const [code, kind, faint] = [data.code[point], kindOf(point), !isChosen(point)];
    pen.shape(shapeOf(code), across(point), down(point), SIZES[kind] * factor, {
      fill: colour(`class-${data.looks[code][0]}`),
      stroke: { tested: colour("raised"), latent: colour("ink") }[kind],
      width: kind === "latent" ? crowd : 0.7,
      alpha: faint ? 0.08 : OPACITY[kind],
    });
    if (!isWrong(point)) return;
    const style = { stroke: colour("wrong"), width: 1.8, alpha: faint ? 0.15 : 1 };
    pen.shape(SHAPE_PATHS[0], across(point), down(point), 6 * factor, style);
  };

  const paint = (pen) => {
    const factor = Math.min(2, Math.max(1, Math.sqrt(plot.view.scale / home)));
    const layerOf = (point) => (isChosen(point) ? 1 + isWrong(point) : 0);
    const shown = points.filter(isShown);
    for (const layer of [0, 1, 2]) {
      shown.filter((point) => layerOf(point) === layer && isInside(point, 20)).forEach((point) => drawPoint(pen, point, factor));
    }
    const missing = shown.filter((point) => !isInside(point)).length;
    outside.textContent = missing
      ? `${missing.toLocaleString("en")} ${missing === 1 ? "point lies" : "points lie"} outside this view; zoom out to see ${missing === 1 ? "it" : "them"}.`
      : "";
    if (current < 0) return;
    pen.shape(SHAPE_PATHS[0], across(current), down(current), 10, { stroke: colour("ink"), width: 2.5 });
    placeCard();
  };

  /* The first view may leave out outliers; zooming out far enough shows every point. */
  const showAll = () => {
    const width = canvas.clientWidth - 2 * MARGIN;
    const height = canvas.clientHeight - 2 * MARGIN;
    home = Math.min(width / wide, height / high);
    const range = (values) => values.reduce(([low, top], value) => [Math.min(low, value), Math.max(top, value)], [0, 1]);
    const [[left, right], [top, bottom]] = [range(xs), range(ys)];
    least = Math.min(home, width / (right - left), height / (bottom - top)) / 2;
    Object.assign(plot.view, {
      scale: home,
      left: MARGIN + (width - wide * home) / 2,
      top: MARGIN + (height - high * home) / 2,
    });
    plot.refresh();
  };

  const nearest = ([x, y]) => {
    let best = -1;
    let closest = REACH * REACH;
    points.filter((point) => isChosen(point) && isShown(point)).forEach((point) => {
      const away = (across(point) - x) ** 2 + (down(point) - y) ** 2;
      if (away <= closest) [closest, best] = [away, point];
    });
    return best;
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
    return element("li", "",
      ...picture(number),
      element("bdi", "label", data.labels[code]),
      element("span", "distance", distance.toLocaleString("en", { maximumSignificantDigits: 3 })));
  };

  const fillCard = (point) => {
    const labels = [element("bdi", "label", data.labels[data.code[point]]), element("bdi", "name", nameOf(point))];
    if (isWrong(point)) {
      labels.push(element("span", "wrong", "predicted as ", element("bdi", "", data.labels[predictedAs(point)])));
    }
    card.replaceChildren(element("div", "framed", ...picture(data.picture[point]), element("div", "about", ...labels)));
    const near = data.near?.[point] ?? [];
    if (!near.length) return;
    card.append(element("div", "card-near", "Nearest latent examples", element("ol", "neighbors", ...near.map(neighbour))));
  };

  const placeCard = () => {
    const [x, y] = [across(current), down(current)];
    const { offsetWidth: width, offsetHeight: height } = card;
    const left = x + 18 + width < frame.clientWidth ? x + 18 : x - 18 - width;
    card.style.left = `${Math.max(8, Math.min(left, frame.clientWidth - width - 8))}px`;
    card.style.top = `${Math.max(8, Math.min(y - 20, frame.clientHeight - height - 8))}px`;
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
    plot.refresh();
  };

  const highlight = (code) => {
    highlighted = code;
    chooser.value = String(code);
    legend.querySelectorAll("button").forEach((button, index) => button.setAttribute("aria-pressed", index === code));
    if (current >= 0 && !isChosen(current)) show(-1);
    plot.refresh();
  };

  /* Steps through the points by class, latent examples before rows, and keeps them in view. */
  const order = [...points].sort(
    (left, right) => data.code[left] - data.code[right] || isLatent(right) - isLatent(left) || left - right,
  );
  const step = (by) => {
    const open = order.filter((point) => isShown(point) && isChosen(point));
    if (!open.length) return;
    const at = open.indexOf(current);
    const next = open[(at < 0 ? (by > 0 ? 0 : open.length - 1) : at + by + open.length) % open.length];
    if (!isInside(next)) plot.move(canvas.clientWidth / 2 - across(next), canvas.clientHeight / 2 - down(next));
    show(next, true);
  };

  /* A page that scrolls under a resting mouse must not undo the choice of the keyboard. */
  let seen = null;
  const rests = (event) => {
    const before = seen ?? event;
    seen = event;
    return Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY) < 2;
  };
  const plot = drawing(canvas, {
    paint,
    paper: "raised",
    limits: () => [least, 200 * home],
    showAll,
    keys: {
      ArrowLeft: () => plot.move(40, 0),
      ArrowRight: () => plot.move(-40, 0),
      ArrowUp: () => plot.move(0, 40),
      ArrowDown: () => plot.move(0, -40),
      n: () => step(1),
      p: () => step(-1),
      Escape: () => show(-1),
    },
    onPoint: (here, event) => { if (!(byKeyboard && rests(event))) show(nearest(here)); },
    onLeave: () => { if (!byKeyboard) show(-1); },
    onTap: (here) => show(nearest(here)),
  });
  layers.forEach((box) => box.addEventListener("change", () => { show(-1); plot.refresh(); }));
  document.querySelector("select.view")?.addEventListener("change", (event) => {
    ({ x: xs, y: ys, wide, high } = data.views[event.target.value]);
    show(-1);
    fit();
    showAll();
  });
  chooser.addEventListener("change", () => highlight(Number(chooser.value)));

  if (data.labels.length <= LEGEND_CLASSES) {
    data.labels.forEach((label, code) => {
      const mark = svgElement("svg", { viewBox: "-1.4 -1.4 2.8 2.8", "aria-hidden": "true" });
      const path = mark.appendChild(svgElement("path", { d: shapeOf(code) }));
      path.style.fill = `var(--class-${data.looks[code][0]})`;
      const button = element("button", "", mark, element("bdi", "", label));
      button.type = "button";
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => highlight(highlighted === code ? -1 : code));
      legend.append(element("li", "", button));
    });
  }

  let fitted = null;
  const fit = () => {
    const wanted = 2 * MARGIN + (canvas.clientWidth * high) / wide;
    canvas.style.height = `${Math.round(Math.min(560, Math.max(300, wanted)))}px`;
    const { clientWidth: width, clientHeight: height } = canvas;
    plot.resize();
    if (!fitted || plot.view.scale === home) showAll();
    else plot.move((width - fitted.width) / 2, (height - fitted.height) / 2);
    fitted = { width, height };
    plot.draw(); // at once: a canvas of a new size is empty
  };
  new ResizeObserver(fit).observe(canvas);
  fit();
})();
