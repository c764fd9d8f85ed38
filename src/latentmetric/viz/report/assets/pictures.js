/* Shows in every picture element its part of the one sheet that holds all pictures. */

const showPicture = (() => {
  const style = getComputedStyle(document.documentElement);
  const columns = Number(style.getPropertyValue("--columns"));
  const lines = Number(style.getPropertyValue("--lines"));
  const along = (place, count) => (count > 1 ? (100 * place) / (count - 1) : 0);

  return (element, number) => {
    const across = along(number % columns, columns);
    const down = along(Math.floor(number / columns), lines);
    element.style.backgroundPosition = `${across}% ${down}%`;
  };
})();

document.querySelectorAll("[data-picture]").forEach((element) => {
  showPicture(element, Number(element.dataset.picture));
});
