/* The map: points as SVG, with zooming, moving, pointing and stepping by keyboard. */

document.querySelectorAll("svg.map").forEach((svg) => {
  const data = JSON.parse(document.getElementById("map-data").textContent);
  const frame = svg.parentElement;
  const card = frame.querySelector(".card");
  const chooser = document.querySelector(".highlight");
  const legend = document.querySelector(".legend");
  const layers = [...document.querySelectorAll(".layer")];
  const LEGEND_CLASSES = 50;
  const REACH = 14; // pixels from the mouse to a point that it points at
  const MARGIN = 24;
  const SHAPES = [
    "M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z",
    "M-.9 -.9H.9V.9H-.9Z",
    "M0 -1.2L1.1 .8H-1.1Z",
    "M0 -1.3L1.3 0L0 1.3L-1.3 0Z",
    "M-.4 -1.2H.4V-.4H1.2V.4H.4V1.2H-.4V.4H-1.2V-.4H-.4Z",
  ];
  let view = null; // the part of the plane that is seen
  let home = null; // the part that is seen first
  let positions = null;
  let open = []; // points that can be pointed at
  let highlighted = -1;
  let current = null;
  let byKeyboard = false;

  const drawn = (code, className, d = SHAPES[data.looks[code][1]]) => {
    const path = svgElement("path", { d, class: className });
    path.style.setProperty("--colour", `var(--class-${data.looks[code][0]})`);
    return path;
  };
  const points = data.points.map(([kind, code, predicted, name, picture, near], index) => {
    const isWrong = predicted !== code;
    const marks = [drawn(code, `point ${kind}`), ...(isWrong ? [drawn(code, "point ring", SHAPES[0])] : [])];
    return { index, kind, code, predicted, name, picture, near, isWrong, marks };
  });
  const cursor = svgElement("path", { d: SHAPES[0], class: "point cursor" });
  svg.append(...points.map(({ marks }) => marks[0]), ...points.flatMap(({ marks }) => marks.slice(1)), cursor);
  svg.classList.toggle("crowded", points.length > 1500);

  const locate = (mark, index) => ["x", "y"].forEach((axis) => mark.style.setProperty(`--${axis}`, `${positions[axis][index]}px`));
  const isInside = ({ index }) => {
    const [x, y] = [positions.x[index] - view.x, positions.y[index] - view.y];
    return x >= 0 && y >= 0 && x <= view.width && y <= view.height;
  };
  const see = (wanted) => {
    view = wanted;
    svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
    svg.style.setProperty("--pixel", 1 / svg.getScreenCTM().a);
    svg.style.setProperty("--zoom", Math.min(2, Math.max(1, Math.sqrt(home.width / view.width))));
    const missing = points.filter((point) => isShown(point) && !isInside(point)).length;
    const [lie, them] = missing === 1 ? ["point lies", "it"] : ["points lie", "them"];
    document.querySelector(".outside").textContent =
      missing ? `${missing.toLocaleString("en")} ${lie} outside this view; zoom out to see ${them}.` : "";
    if (current) placeCard();
  };
  const zoom = (factor, [x, y] = [view.x + view.width / 2, view.y + view.height / 2]) => {
    const by = Math.min(2000, Math.max(0.005, (factor * home.width) / view.width)) * (view.width / home.width);
    see({ x: x - (x - view.x) / by, y: y - (y - view.y) / by, width: view.width / by, height: view.height / by });
  };
  const move = (x, y) => see({ ...view, x: view.x + x, y: view.y + y });
  const openView = (name) => {
    positions = data.views[name];
    points.forEach(({ marks, index }) => marks.forEach((mark) => locate(mark, index)));
    svg.style.aspectRatio = positions.wide / positions.high;
    const box = svg.getBoundingClientRect(); // its height has limits, so that it may be wider than the points
    const scale = Math.min((box.width - 2 * MARGIN) / positions.wide, (box.height - 2 * MARGIN) / positions.high);
    const [width, height] = [box.width / scale, box.height / scale];
    home = { x: (positions.wide - width) / 2, y: (positions.high - height) / 2, width, height };
    see(home);
  };

  const isShown = ({ kind, isWrong }) => {
    const [wrongOnly, own] = ["wrong", kind].map((value) => layers.find((box) => box.value === value).checked);
    return wrongOnly && kind !== "latent" ? isWrong : own;
  };
  const isChosen = ({ code }) => highlighted < 0 || code === highlighted;
  const update = () => {
    open = points.filter((point) => isShown(point) && isChosen(point));
    points.forEach((point) => point.marks.forEach((mark) => {
      mark.style.display = isShown(point) ? "" : "none";
      mark.classList.toggle("faint", !isChosen(point));
    }));
    if (!open.includes(current)) show(null);
    see(view);
  };
  const highlight = (code) => {
    highlighted = code;
    chooser.value = String(code);
    legend.querySelectorAll("button").forEach((made, index) => made.setAttribute("aria-pressed", index === code));
    update();
  };

  const picture = (number) => (number === null ? [] : [showPicture(element("i", "picture"), number)]);
  const neighbour = ([code, number, distance]) => element("li", "",
    ...picture(number),
    element("bdi", "label", data.labels[code]),
    element("span", "distance", distance.toLocaleString("en", { maximumSignificantDigits: 3 })));
  const fillCard = (point) => {
    const about = element("div", "about", element("bdi", "label", data.labels[point.code]), element("bdi", "name", point.name));
    if (point.isWrong) about.append(element("span", "wrong", "predicted as ", element("bdi", "", data.labels[point.predicted])));
    card.replaceChildren(element("div", "framed", ...picture(point.picture), about));
    if (!point.near.length) return;
    card.append(element("div", "card-near", "Nearest latent examples", element("ol", "neighbors", ...point.near.map(neighbour))));
  };
  const placeCard = () => {
    const [box, mark] = [frame, cursor].map((part) => part.getBoundingClientRect());
    const [x, y] = [mark.x + mark.width / 2 - box.x, mark.y + mark.height / 2 - box.y];
    const left = x + 18 + card.offsetWidth < box.width ? x + 18 : x - 18 - card.offsetWidth;
    card.style.left = `${Math.max(8, Math.min(left, box.width - card.offsetWidth - 8))}px`;
    card.style.top = `${Math.max(8, Math.min(y - 20, box.height - card.offsetHeight - 8))}px`;
  };
  const show = (point) => {
    if (point === current) return;
    current = point;
    card.hidden = !point;
    cursor.style.display = point ? "inline" : "none";
    if (!point) return;
    fillCard(point);
    locate(cursor, point.index);
    placeCard();
  };

  /* Steps through the points by class, latent examples before rows, and keeps them in view. */
  const step = (by) => {
    const order = open.toSorted((one, other) =>
      one.code - other.code || (other.kind === "latent") - (one.kind === "latent") || one.index - other.index);
    const from = order.includes(current) ? order.indexOf(current) : by > 0 ? -1 : 0;
    const next = order.at((from + by) % order.length);
    if (!next) return;
    show(next);
    byKeyboard = true;
    if (!isInside(next)) move(positions.x[next.index] - view.x - view.width / 2, positions.y[next.index] - view.y - view.height / 2);
  };

  /* Two fingers zoom, one finger or the mouse moves, a tap or the mouse shows a point. */
  const fingers = new Map();
  let travelled = 0;
  const position = ({ clientX, clientY }) => {
    const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(svg.getScreenCTM().inverse());
    return [x, y];
  };
  const grip = () => {
    const touched = [...fingers.values()];
    const [[x, y], [a, b]] = [touched[0], touched.at(-1)];
    return { clientX: (x + a) / 2, clientY: (y + b) / 2, spread: Math.hypot(x - a, y - b) };
  };
  const nearest = (event) => {
    const [x, y] = position(event);
    const reach = REACH / svg.getScreenCTM().a;
    const away = ({ index }) => Math.hypot(positions.x[index] - x, positions.y[index] - y);
    const near = open.filter((point) => away(point) <= reach);
    return near.reduce((best, point) => (best && away(best) < away(point) ? best : point), null);
  };
  const on = (types, act) => types.split(" ").forEach((type) => svg.addEventListener(type, act, { passive: false }));
  on("pointerdown", (event) => {
    svg.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
    travelled = fingers.size > 1 ? Infinity : 0;
  });
  on("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) {
      const rests = !event.movementX && !event.movementY;
      if (event.pointerType !== "mouse" || (byKeyboard && rests)) return;
      byKeyboard = false;
      show(nearest(event));
      return;
    }
    const before = grip();
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
    const after = grip();
    travelled += Math.hypot(after.clientX - before.clientX, after.clientY - before.clientY);
    if (travelled <= 4) return;
    const [[x, y], [a, b]] = [before, after].map(position);
    move(x - a, y - b);
    if (before.spread && after.spread) zoom(after.spread / before.spread, position(after));
  });
  on("pointerup pointercancel", (event) => {
    fingers.delete(event.pointerId);
    if (event.type === "pointerup" && travelled <= 4) show(nearest(event));
  });
  on("pointerleave", () => { if (!fingers.size && !byKeyboard) show(null); });
  on("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * 0.0015), position(event));
  });
  const along = (across, down) => () => move(across * 0.05 * view.width, down * 0.05 * view.height);
  const keys = {
    ArrowLeft: along(-1, 0), ArrowRight: along(1, 0), ArrowUp: along(0, -1), ArrowDown: along(0, 1),
    "+": () => zoom(1.4), "=": () => zoom(1.4), "-": () => zoom(1 / 1.4), 0: () => see(home),
    n: () => step(1), p: () => step(-1), escape: () => show(null),
  };
  on("keydown", (event) => {
    const act = keys[event.key] ?? keys[event.key.toLowerCase()];
    if (event.ctrlKey || event.metaKey || event.altKey || !act) return;
    event.preventDefault();
    act();
  });

  document.querySelectorAll("[data-zoom]").forEach((made) => {
    const factor = Number(made.dataset.zoom);
    made.addEventListener("click", () => (factor ? zoom(factor) : see(home)));
  });
  layers.forEach((box) => box.addEventListener("change", update));
  chooser.addEventListener("change", () => highlight(Number(chooser.value)));
  document.querySelector("select.view")?.addEventListener("change", ({ target }) => { show(null); openView(target.value); });
  (data.labels.length > LEGEND_CLASSES ? [] : data.labels).forEach((label, code) => {
    const mark = svgElement("svg", { viewBox: "-1.4 -1.4 2.8 2.8", "aria-hidden": "true" });
    mark.append(drawn(code, "look"));
    const made = button(() => highlight(highlighted === code ? -1 : code), "", mark, element("bdi", "", label));
    legend.append(element("li", "", made));
  });
  openView("projection");
  highlight(-1);
  new ResizeObserver(() => see(view)).observe(svg);
});
