/* Shows one class of the gallery at a time. */

document.querySelectorAll(".chooser").forEach((chooser) => {
  const parts = new Map(
    [...document.querySelectorAll(".gallery-class")].map((part) => [part.dataset.class, part]),
  );
  const choose = () => {
    parts.forEach((part, code) => part.classList.toggle("chosen", code === chooser.value));
  };
  document.querySelectorAll(".step").forEach((button) => {
    button.addEventListener("click", () => {
      const count = chooser.options.length;
      chooser.selectedIndex = (chooser.selectedIndex + Number(button.dataset.step) + count) % count;
      choose();
    });
  });
  chooser.addEventListener("change", choose);
  choose();
});
