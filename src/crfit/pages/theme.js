"use strict";
// The button that switches between light and dark. A page that draws with colours listens to "theme".

const byId = (id) => document.getElementById(id);

function setTheme(dark) {
  document.documentElement.style.colorScheme = dark ? "dark" : "light";
  byId("theme").setAttribute("aria-pressed", String(dark));
  document.dispatchEvent(new Event("theme"));
}

const system = matchMedia("(prefers-color-scheme: dark)");
system.addEventListener("change", () => setTheme(system.matches));
byId("theme").addEventListener("click", (event) => {
  setTheme(event.currentTarget.getAttribute("aria-pressed") !== "true");
});
setTheme(system.matches);

