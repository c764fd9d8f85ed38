/* The theme follows the system until the reader chooses one. */
"use strict";

document.documentElement.dataset.script = "";

/* The way back to the contents is offered where they are out of sight. */
new IntersectionObserver(([contents]) => {
  document.querySelector(".to-top").classList.toggle("away", !contents.isIntersecting);
}).observe(document.querySelector("nav"));

const theme = (() => {
  const root = document.documentElement;
  const button = document.querySelector(".theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const listeners = [];

  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const remembered = () => {
    try { return window.localStorage.getItem("latentmetric-theme"); } catch { return null; }
  };
  const remember = (value) => {
    try { window.localStorage.setItem("latentmetric-theme", value); } catch { /* not for files */ }
  };
  const update = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Use the ${isDark() ? "light" : "dark"} theme`);
    listeners.forEach((listener) => listener());
  };

  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember(root.dataset.theme);
    update();
  });
  system.addEventListener("change", update);
  if (["light", "dark"].includes(remembered())) root.dataset.theme = remembered();
  update();
  return { onChange: (listener) => listeners.push(listener) };
})();
