/* The confusion matrix: cells on a canvas, with names where there is room for them. */

(() => {
  const canvas = document.querySelector("canvas.matrix");
  if (!canvas) return;
  const data = JSON.parse(document.getElementById("report-data").textContent).matrix;
  const words = document.querySelector(".matrix-words");
  const context = canvas.getContext("2d");

  const TEXT = 11;
  const READABLE = 12;
  const ROOM_FOR_COUNTS = 22;
  const SEEN = 2.5;
  const LEAST_ROOM = 45; // a name is not cut to less
  const SLANT = 1.35; // how much longer than its width and height a turned text may be
  const count = data.labels.length;
  const numbers = new Map(data.cells.map(([row, column, rows]) => [row * count + column, rows]));
  const colours = {};
  let ratio = 1;
  let home = 1;
  let side = 1;
  let chosen = null;
  let beside = data.labels;
  let above = data.labels;

  /* Names need a margin as wide as the longest of them, up to a limit; the longest that fit are drawn. */
  const measured = (text) => {
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
  const margins = () => {
    const room = canvas.parentElement.clientWidth;
    const left = Math.min(widest + 12, Math.max(64, room * 0.28));
    return { left, top: left * 0.72 + 8 };
  };
  const roomAbove = () => (margins().top - 12) * SLANT;
  const frame = () => {
    const { left, top } = margins();
    return { left, top, width: side, height: side };
  };

  const paint = (pen) => {
    const { left, top, width, height } = frame();
    const { scale } = plot.view;
    pen.clip(left, top, width, height, () => {
      pen.rectangle(left, top, width, height, colours.raised);
      data.cells.forEach(([row, column, rows]) => {
        const x = plot.view.left + column * scale;
        const y = plot.view.top + row * scale;
        if (x + scale < left || y + scale < top || x > left + width || y > top + height) return;
        const share = rows / (data.sizes[row] || 1);
        const colour = row === column ? colours.model : colours.wrong;
        const size = Math.max(scale - (scale > 6 ? 1 : 0), SEEN);
        const faintest = scale > READABLE ? 0.18 : 0.4;
        pen.rectangle(x, y, size, size, colour, faintest + (1 - faintest) * Math.sqrt(share));
        if (scale < ROOM_FOR_COUNTS) return;
        const fill = share > 0.35 ? colours.raised : colours.ink;
        pen.text(x + scale / 2, y + scale / 2 + 4, rows.toLocaleString("en"), { fill, size: TEXT, anchor: "middle" });
      });
    });
    outline(pen);
    writeNames(pen);
  };

  const outline = (pen) => {
    const { left, top, width, height } = frame();
    pen.shape(`M0 0H${width}V${height}H0Z`, left, top, 1, { stroke: colours.rule });
    if (!chosen) return;
    const { scale } = plot.view;
    pen.clip(left, top, width, height, () => {
      const size = Math.max(scale, 3);
      pen.shape(`M0 0H${size}V${size}H0Z`, plot.view.left + chosen[1] * scale, plot.view.top + chosen[0] * scale, 1, { stroke: colours.ink, width: 2 });
    });
  };

  /* Where there is no room for all names, every second, third and so on is written. */
  const writeNames = (pen) => {
    const { left, top, width, height } = frame();
    const { scale } = plot.view;
    const everyRow = Math.ceil(READABLE / scale);
    const everyColumn = Math.ceil(1.4 * READABLE / scale);
    data.labels.forEach((_, index) => {
      const y = plot.view.top + (index + 0.5) * scale;
      const x = plot.view.left + (index + 0.5) * scale;
      const fill = colours.soft;
      if (index % everyRow === 0 && y > top && y < top + height) {
        pen.text(left - 6, y + 4, beside[index], { fill, size: TEXT, anchor: "end" });
      }
      const room = Math.min(roomAbove(), (canvas.clientWidth - x) * SLANT);
      if (index % everyColumn === 0 && x > left && x < left + width && (room > LEAST_ROOM || measured(above[index]) <= room)) {
        pen.text(x + 2, top - 6, cut(above[index], room), { fill, size: TEXT, turned: true });
      }
    });
  };

  const draw = () => {
    const pen = canvasPen(context, ratio);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    paint(pen);
  };
  const refresh = onNextFrame(draw);

  const cellAt = ([x, y]) => {
    const { left, top, width, height } = frame();
    if (x < left || y < top || x > left + width || y > top + height) return null;
    const column = Math.floor((x - plot.view.left) / plot.view.scale);
    const row = Math.floor((y - plot.view.top) / plot.view.scale);
    return row >= 0 && column >= 0 && row < count && column < count ? [row, column] : null;
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
    refresh();
  };
  const step = (down, across) => {
    const [row, column] = chosen ?? [0, 0];
    const inside = (index) => Math.min(count - 1, Math.max(0, index));
    choose([inside(row + down), inside(column + across)]);
    const { left, top, width, height } = frame();
    const x = plot.view.left + (chosen[1] + 0.5) * plot.view.scale;
    const y = plot.view.top + (chosen[0] + 0.5) * plot.view.scale;
    if (x < left || y < top || x > left + width || y > top + height) {
      plot.move(left + width / 2 - x, top + height / 2 - y);
    }
  };

  const plot = zoomable(canvas, {
    limits: () => [home, Math.max(48, home)],
    onChange: () => { hold(); refresh(); },
    onPoint: (here) => choose(cellAt(here)),
    onLeave: () => {},
    onTap: (here) => choose(cellAt(here)),
  });
  /* The matrix always fills its frame. */
  const hold = () => {
    const { left, top, width, height } = frame();
    const size = count * plot.view.scale;
    plot.view.left = Math.min(left, Math.max(left + width - size, plot.view.left));
    plot.view.top = Math.min(top, Math.max(top + height - size, plot.view.top));
  };
  const showAll = () => {
    const { left, top } = frame();
    Object.assign(plot.view, { scale: home, left, top });
    refresh();
  };
  onZoomButtons("matrix", plot.zoom, showAll);
  onKeys(canvas, {
    ArrowLeft: () => step(0, -1),
    ArrowRight: () => step(0, 1),
    ArrowUp: () => step(-1, 0),
    ArrowDown: () => step(1, 0),
    "+": () => plot.zoom(1.4),
    "=": () => plot.zoom(1.4),
    "-": () => plot.zoom(1 / 1.4),
    0: showAll,
  });

  let fitted = 0;
  const fit = () => {
    const { left, top } = margins();
    const room = canvas.parentElement.clientWidth - left - 4;
    if (room === fitted) return; // only its height has changed
    fitted = room;
    side = Math.min(room, Math.max(160, Math.min(560, count * 34)));
    canvas.style.width = `${Math.ceil(left + side + 4 + (side < room ? Math.min(room - side, 0.6 * left) : 0))}px`;
    canvas.style.height = `${Math.ceil(top + side + 4)}px`;
    home = side / count;
    beside = fitting(left - 12);
    above = fitting(roomAbove());
    document.querySelectorAll("[data-of='matrix']").forEach((part) => { part.hidden = home >= ROOM_FOR_COUNTS; });
    ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(canvas.clientWidth * ratio);
    canvas.height = Math.round(canvas.clientHeight * ratio);
    showAll();
    draw(); // at once: a canvas of a new size is empty
  };
  const colour = () => Object.assign(colours, readColours(["raised", "rule", "ink", "soft", "model", "wrong", "paper"]));

  colour();
  theme.onChange(() => { colour(); refresh(); });
  drawers.set("confusion", () => {
    const pen = svgPen(canvas.clientWidth, canvas.clientHeight, colours.paper);
    paint(pen);
    return pen.svg();
  });
  new ResizeObserver(fit).observe(canvas.parentElement);
  fit();
})();
