// Draws the report's charts, re-themes them, and runs its two kinds of buttons.
(() => {
  "use strict";

  const root = document.documentElement;
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const figures = read("figures");
  const darkOfLight = new Map(Object.entries(read("palette")));
  const PRINT_WIDTH = 660;
  const CONFIG = {
    displaylogo: false,
    // Where nothing hovers, the buttons would cover the chart permanently.
    displayModeBar: window.matchMedia("(hover: hover)").matches ? "hover" : false,
    responsive: true,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
    toImageButtonOptions: { format: "svg" },
  };
  let printing = false;

  // ---- theme: the reader's choice, else the system's; paper is always light --------------
  const isDark = () => {
    if (printing) return false;
    return root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches;
  };

  const recolour = (value) => {
    if (typeof value === "string") return darkOfLight.get(value) ?? value;
    if (Array.isArray(value)) return value.map(recolour);
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, recolour(v)]));
    }
    return value;
  };

  const remembered = () => {
    const theme = new URLSearchParams(window.location.search).get("theme");
    if (theme === "dark" || theme === "light") return theme;
    try {
      return window.localStorage.getItem("compilegate-theme");
    } catch {
      return null; // storage is off for files in some browsers
    }
  };

  const showTheme = () => {
    const button = document.getElementById("theme");
    const next = isDark() ? "light" : "dark";
    button.textContent = next === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Switch to the ${next} theme`);
  };

  const chooseTheme = (theme) => {
    if (theme === "dark" || theme === "light") root.dataset.theme = theme;
    showTheme();
  };

  // ---- charts ----------------------------------------------------------------------------
  const draw = (element) => {
    const original = figures[element.dataset.chart][Number(element.dataset.view)];
    const figure = isDark() ? recolour(original) : structuredClone(original);
    if (printing) figure.layout.width = PRINT_WIDTH;
    const done = (error) => {
      element.textContent = `This chart could not be drawn (${error}). The tables have its numbers.`;
      element.dataset.failed = "true";
    };
    try {
      return window.Plotly.react(element, figure.data, figure.layout, CONFIG).catch(done);
    } catch (error) {
      done(error);
      return Promise.resolve();
    }
  };

  const chartElements = () => [...document.querySelectorAll(".plot")];
  const drawAll = () => Promise.all(chartElements().map(draw));

  const chooseView = (button) => {
    const plot = document.getElementById(button.getAttribute("aria-controls"));
    plot.dataset.view = button.dataset.view;
    for (const other of button.parentElement.children) {
      other.setAttribute("aria-pressed", String(other === button));
    }
    draw(plot);
  };

  // ---- wiring ----------------------------------------------------------------------------
  chooseTheme(remembered());
  document.getElementById("theme").addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    try {
      window.localStorage.setItem("compilegate-theme", theme);
    } catch {
      // the choice then lasts as long as the page
    }
    chooseTheme(theme);
    drawAll();
  });
  prefersDark.addEventListener("change", () => {
    showTheme();
    drawAll();
  });
  for (const button of document.querySelectorAll("button[data-view]")) {
    button.addEventListener("click", () => chooseView(button));
  }
  const forPrint = (on) => () => {
    printing = on;
    for (const detail of document.querySelectorAll("details")) detail.open = on || detail.dataset.open === "true";
    drawAll();
  };
  window.addEventListener("beforeprint", () => {
    for (const detail of document.querySelectorAll("details")) detail.dataset.open = String(detail.open);
    forPrint(true)();
  });
  window.addEventListener("afterprint", forPrint(false));
  drawAll().then(() => {
    root.dataset.charts = "drawn";
  });
})();
