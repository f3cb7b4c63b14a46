// Sets light or dark before the first paint: a module would run after it.
(() => {
  const stored = () => {
    try {
      return localStorage.getItem("nodepiece-theme");
    } catch {
      return null; // storage is switched off: the setting of the system holds
    }
  };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const current = () => stored() ?? (system.matches ? "dark" : "light");

  const apply = () => {
    const theme = current();
    document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) {
      button.textContent = theme === "dark" ? "Light" : "Dark";
      button.setAttribute("aria-label", `Use ${theme === "dark" ? "light" : "dark"} colours`);
    }
    document.dispatchEvent(new CustomEvent("theme"));
  };

  apply();
  system.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme").addEventListener("click", () => {
      const other = current() === "dark" ? "light" : "dark";
      try {
        localStorage.setItem("nodepiece-theme", other);
        apply();
      } catch {
        document.documentElement.dataset.theme = other;
      }
    });
  });
})();
