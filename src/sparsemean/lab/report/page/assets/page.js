"use strict";
// Draws figures as they come near the window, in the colours of the theme of the moment.
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const plots = [...document.querySelectorAll(".plot")];
  const touch = matchMedia("(pointer: coarse)");
  const config = { displayModeBar: false, responsive: true, doubleClick: "reset", showTips: false };

  // Colours are names of CSS variables; everything else is left as it is.
  const coloured = (value, look, key) => {
    if (Array.isArray(value)) return typeof value[0] === "object" ? value.map((item) => coloured(item, look)) : value.slice();
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, coloured(item, look, name)]));
    }
    return key?.endsWith("color") && String(value).startsWith("--") ? look.getPropertyValue(value).trim() : value;
  };

  const hidden = (plot) => new Set([...plot.closest("section").querySelectorAll(".legend [aria-pressed=false]")].map((entry) => entry.value));

  const draw = (plot) => {
    const { data, layout } = coloured(figures[plot.dataset.plot], getComputedStyle(document.documentElement));
    const off = hidden(plot);
    for (const trace of data) trace.visible = !off.has(trace.legendgroup);
    if (plot.dataset.drawn && layout.yaxis.tickmode) layout.yaxis.tickmode = plot.layout.yaxis.tickmode;
    layout.dragmode = touch.matches ? false : "zoom"; // a finger scrolls the page
    Plotly.react(plot, data, layout, config);
    if (plot.dataset.drawn) return;
    plot.dataset.drawn = "yes";
    // The numbers on a logarithmic axis were chosen for the whole of it; zoomed in, others are needed.
    const home = String(layout.yaxis.range);
    if (layout.yaxis.tickmode) plot.on("plotly_relayout", () => {
      const tickmode = String(plot.layout.yaxis.range) === home ? "array" : "auto";
      if (plot.layout.yaxis.tickmode !== tickmode) Plotly.relayout(plot, { "yaxis.tickmode": tickmode });
    });
  };

  const near = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      target.querySelectorAll(".plot").forEach(draw);
    }
  }, { rootMargin: "700px" });
  document.querySelectorAll(".panels").forEach((row) => near.observe(row));

  // Legends stay in sight below the navigation, which may be one line or two.
  const nav = document.querySelector("nav");
  const measure = () => document.documentElement.style.setProperty("--nav", `${nav.offsetHeight}px`);
  addEventListener("resize", measure);
  measure();

  const redraw = (among) => among.filter((plot) => plot.dataset.drawn).forEach(draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw(plots));
  addEventListener("beforeprint", () => plots.filter((plot) => !plot.dataset.drawn).forEach(draw));

  // One click hides or shows a scheme in all panels of its figure; a double click shows it alone, or all again.
  for (const legend of document.querySelectorAll(".legend")) {
    const entries = [...legend.querySelectorAll("button")];
    const own = [...legend.closest("section").querySelectorAll(".plot")];
    const shown = (entry) => entry.getAttribute("aria-pressed") === "true";
    legend.addEventListener("click", ({ target }) => {
      const entry = target.closest("button");
      if (!entry) return;
      entry.setAttribute("aria-pressed", String(!shown(entry)));
      redraw(own);
    });
    legend.addEventListener("dblclick", ({ target }) => {
      const entry = target.closest("button");
      if (!entry) return;
      const alone = entries.every((other) => shown(other) === (other === entry));
      for (const other of entries) other.setAttribute("aria-pressed", String(alone || other === entry));
      redraw(own);
    });
  }
})();
