/* The confusion matrix: cells on a canvas, with names where there is room for them. */

(() => {
  const canvas = document.querySelector("canvas.matrix");
  const data = reportData.matrix;
  const words = document.querySelector(".matrix-words");

  const TEXT = 11;
  const READABLE = 12;
  const ROOM_FOR_COUNTS = 22;
  const SEEN = 2.5;
  const LEAST_ROOM = 45; // a name is not cut to less
  const SLANT = 1.35; // how much longer than its width and height a turned text may be
  const count = data.labels.length;
  const numbers = new Map(data.cells.map(([row, column, rows]) => [row * count + column, rows]));
  let home = 1;
  let chosen = null;
  let beside = data.labels;
  let above = data.labels;
  let frame = { left: 0, top: 0, side: 0 };

  /* Names need a margin as wide as the longest of them, up to a limit; the longest that fit are drawn. */
  const measured = (text) => {
    const context = canvas.getContext("2d");
    context.font = `${TEXT}px ${FONT}`;
    return context.measureText(text).width;
  };
  const fitting = (room) =>
    [data.labels, ...data.shorter].find((names) => names.every((name) => measured(name) <= room)) ?? data.shorter.at(-1);
  const cut = (name, room) => {
    let text = name;
    while (text.length > 2 && measured(text) > room) text = `${text.slice(0, -2)}…`;
    return text;
  };
  const widest = data.labels.reduce((most, label) => Math.max(most, measured(label)), 0);
  const roomAbove = () => (frame.top - 12) * SLANT;

  const corner = (row, column) => [plot.view.left + column * plot.view.scale, plot.view.top + row * plot.view.scale];
  const isInside = (x, y, around = 0) =>
    x >= frame.left - around && y >= frame.top - around && x <= frame.left + frame.side && y <= frame.top + frame.side;

  const paintCell = (pen, [row, column, rows]) => {
    const { scale } = plot.view;
    const [x, y] = corner(row, column);
    if (!isInside(x, y, scale)) return;
    const share = rows / (data.sizes[row] || 1);
    const size = Math.max(scale - (scale > 6 ? 1 : 0), SEEN);
    const faintest = scale > READABLE ? 0.18 : 0.4;
    pen.shape(rectangle(size, size), x, y, 1, {
      fill: colour(row === column ? "model" : "wrong"),
      alpha: faintest + (1 - faintest) * Math.sqrt(share),
    });
    if (scale < ROOM_FOR_COUNTS) return;
    const fill = colour(share > 0.35 ? "raised" : "ink");
    pen.text(x + scale / 2, y + scale / 2 + 4, rows.toLocaleString("en"), { fill, size: TEXT, anchor: "middle" });
  };

  const paint = (pen) => {
    const { left, top, side } = frame;
    pen.clip(left, top, side, side, () => {
      pen.shape(rectangle(side, side), left, top, 1, { fill: colour("raised") });
      data.cells.forEach((cell) => paintCell(pen, cell));
    });
    pen.shape(rectangle(side, side), left, top, 1, { stroke: colour("rule") });
    if (chosen) {
      const size = Math.max(plot.view.scale, 3);
      pen.clip(left, top, side, side, () => {
        pen.shape(rectangle(size, size), ...corner(...chosen), 1, { stroke: colour("ink"), width: 2 });
      });
    }
    writeNames(pen);
  };

  /* Where there is no room for all names, every second, third and so on is written. */
  const writeNames = (pen) => {
    const { left, top, side } = frame;
    const everyRow = Math.ceil(READABLE / plot.view.scale);
    const everyColumn = Math.ceil(1.4 * READABLE / plot.view.scale);
    const style = { fill: colour("soft"), size: TEXT };
    data.labels.forEach((_, index) => {
      const [x, y] = corner(index + 0.5, index + 0.5);
      if (index % everyRow === 0 && y > top && y < top + side) {
        pen.text(left - 6, y + 4, beside[index], { ...style, anchor: "end" });
      }
      const room = Math.min(roomAbove(), (canvas.clientWidth - x) * SLANT);
      if (index % everyColumn === 0 && x > left && x < left + side && (room > LEAST_ROOM || measured(above[index]) <= room)) {
        pen.text(x + 2, top - 6, cut(above[index], room), { ...style, turned: true });
      }
    });
  };

  const choose = (cell) => {
    chosen = cell;
    if (cell) {
      const [row, column] = cell;
      const rows = numbers.get(row * count + column) ?? 0;
      const share = ((100 * rows) / (data.sizes[row] || 1)).toFixed(1);
      words.textContent = row === column
        ? `${data.labels[row]}: ${rows} of ${data.sizes[row]} right (${share} %)`
        : `${data.labels[row]} predicted as ${data.labels[column]}: ${rows} of ${data.sizes[row]} (${share} %)`;
    }
    plot.refresh();
  };
  const chooseAt = ([x, y]) => {
    const index = (distance) => Math.min(count - 1, Math.floor(distance / plot.view.scale));
    choose(isInside(x, y) ? [index(y - plot.view.top), index(x - plot.view.left)] : null);
  };
  const step = (down, across) => {
    const [row, column] = chosen ?? [0, 0];
    const inside = (index) => Math.min(count - 1, Math.max(0, index));
    choose([inside(row + down), inside(column + across)]);
    const [x, y] = corner(chosen[0] + 0.5, chosen[1] + 0.5);
    const half = frame.side / 2;
    if (!isInside(x, y)) plot.move(frame.left + half - x, frame.top + half - y);
  };

  const showAll = () => {
    Object.assign(plot.view, { scale: home, left: frame.left, top: frame.top });
    plot.refresh();
  };
  const plot = drawing(canvas, {
    paint,
    paper: "paper",
    limits: () => [home, Math.max(48, home)],
    showAll,
    keys: {
      ArrowLeft: () => step(0, -1),
      ArrowRight: () => step(0, 1),
      ArrowUp: () => step(-1, 0),
      ArrowDown: () => step(1, 0),
    },
    onChange: () => { // the matrix always fills its frame
      const { view } = plot;
      const beyond = frame.side - count * view.scale;
      view.left = Math.min(frame.left, Math.max(frame.left + beyond, view.left));
      view.top = Math.min(frame.top, Math.max(frame.top + beyond, view.top));
    },
    onPoint: chooseAt,
    onTap: chooseAt,
  });

  let fitted = 0;
  const fit = () => {
    const width = canvas.parentElement.clientWidth;
    if (width === fitted) return; // only its height has changed
    fitted = width;
    const left = Math.min(widest + 12, Math.max(64, width * 0.28));
    const top = left * 0.72 + 8;
    const room = width - left - 4;
    const side = Math.min(room, Math.max(160, Math.min(560, count * 34)));
    frame = { left, top, side };
    canvas.style.width = `${Math.ceil(left + side + 4 + (side < room ? Math.min(room - side, 0.6 * left) : 0))}px`;
    canvas.style.height = `${Math.ceil(top + side + 4)}px`;
    home = side / count;
    beside = fitting(left - 12);
    above = fitting(roomAbove());
    document.querySelectorAll("[data-of='matrix']").forEach((part) => { part.hidden = home >= ROOM_FOR_COUNTS; });
    plot.resize();
    showAll();
    plot.draw(); // at once: a canvas of a new size is empty
  };
  new ResizeObserver(fit).observe(canvas.parentElement);
  fit();
})();
