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
    heads.forEach((head, place) => {
      if (place === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
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
