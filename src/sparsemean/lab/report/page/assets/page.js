"use strict";
// Panels are drawn as they come near the window; legends hide and show lines; a reader points, or goes by arrow keys.
(() => {
  const panels = JSON.parse(document.getElementById("figures").textContent);
  const hosts = [...document.querySelectorAll(".plot")];
  const states = new Map();

  const hidden = (host) => new Set([...host.closest("section").querySelectorAll(".legend [aria-pressed=false]")].map((entry) => entry.value));

  // Lines name their places on the horizontal axis by number, since many share them.
  const unfolded = ({ xs, lines, ...panel }) => ({
    ...panel,
    lines: lines.map((line) => ({ ...line, x: xs[line.x], theory: line.theory && { ...line.theory, x: xs[line.theory.x] } })),
  });

  const draw = (host) => {
    const state = states.get(host) ?? { panel: unfolded(panels[host.dataset.plot]), view: null, at: null };
    if (!states.has(host)) {
      states.set(host, state);
      listen(host, state);
    }
    Object.assign(state, Plot.draw(host, state.panel, hidden(host), state.view));
    tell(host, state, null);
    host.dataset.drawn = "yes";
  };
  const redraw = (among) => among.filter((host) => host.dataset.drawn).forEach(draw);

  // The words beside the point at hand.
  const tell = (host, state, target) => {
    const tip = host.querySelector(".tip");
    state.at = target;
    tip.hidden = !target;
    host.querySelectorAll(".line").forEach((line) => line.classList.toggle("at", line.dataset.name === target?.line.name));
    host.querySelector(".here")?.remove();
    if (!target) return;
    const [name, ...rest] = Plot.told(state.panel, target);
    const bold = document.createElement("b");
    bold.textContent = name;
    tip.replaceChildren(bold, ...rest.flatMap((text) => [document.createElement("br"), text]));
    const { width } = host.getBoundingClientRect();
    const scale = width / state.svg.viewBox.baseVal.width;
    const left = Math.min(Math.max(0, target.x * scale + 12), width - tip.offsetWidth);
    const over = target.y * scale - tip.offsetHeight - 10;
    tip.style.left = `${left}px`;
    tip.style.top = `${over > -40 ? over : target.y * scale + 14}px`;
    state.svg.append(Plot.element("circle", { class: "here", cx: target.x, cy: target.y, r: 7, style: `--own:var(${target.line.look})` }));
  };

  const listen = (host, state) => {
    let start = null, frame = null;
    const place = (event) => {
      const bounds = host.getBoundingClientRect(), scale = state.svg.viewBox.baseVal.width / bounds.width;
      return [(event.clientX - bounds.left) * scale, (event.clientY - bounds.top) * scale];
    };
    host.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      if (!start) return tell(host, state, Plot.nearest(state.targets, x, y));
      frame ??= state.svg.appendChild(Plot.element("rect", { class: "frame" }));
      const sides = { x: Math.min(x, start[0]), y: Math.min(y, start[1]), width: Math.abs(x - start[0]), height: Math.abs(y - start[1]) };
      for (const [key, value] of Object.entries(sides)) frame.setAttribute(key, value);
    });
    host.addEventListener("pointerleave", () => document.activeElement === host || tell(host, state, null));
    host.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "mouse") return tell(host, state, Plot.nearest(state.targets, ...place(event))); // a finger scrolls
      if (event.button || state.panel.x.names) return;
      start = place(event);
      host.setPointerCapture(event.pointerId);
    });
    host.addEventListener("pointerup", (event) => {
      if (!start) return;
      const ends = [start, place(event)], { box } = state;
      [start, frame] = [null, frame?.remove()];
      const inside = (value, low, high) => Math.min(Math.max(value, low), high);
      const xs = ends.map(([x]) => inside(x, box.left, box.right)).sort((a, b) => a - b);
      const ys = ends.map(([, y]) => inside(y, box.top, box.bottom)).sort((a, b) => b - a);
      const wide = xs[1] - xs[0] > 12, tall = ys[0] - ys[1] > 12;
      if (!wide && !tall) return;
      state.view = { x: (wide ? xs : [box.left, box.right]).map(state.x.value), y: (tall ? ys : [box.bottom, box.top]).map(state.y.value) };
      draw(host);
    });
    const home = () => {
      if (!state.view) return;
      state.view = null;
      draw(host);
    };
    host.addEventListener("dblclick", home);
    host.addEventListener("blur", () => tell(host, state, null));
    host.addEventListener("keydown", (event) => {
      const { targets } = state;
      if (event.key === "Escape") return tell(host, state, null), home();
      if (!event.key.startsWith("Arrow") || !targets.length) return;
      event.preventDefault();
      const own = Math.max(0, targets.findIndex((line) => line.some((target) => target.line === state.at?.line)));
      if (!state.at) return tell(host, state, targets[0][0]);
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step) {
        const at = targets[own].findIndex((target) => target.i === state.at.i) + step;
        return tell(host, state, targets[own][Math.min(Math.max(at, 0), targets[own].length - 1)]);
      }
      const other = targets[(own + (event.key === "ArrowDown" ? 1 : targets.length - 1)) % targets.length];
      tell(host, state, other.reduce((best, target) => (Math.abs(target.x - state.at.x) < Math.abs(best.x - state.at.x) ? target : best)));
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
  let width = innerWidth;
  const measure = () => document.documentElement.style.setProperty("--nav", `${nav.offsetHeight}px`);
  addEventListener("resize", () => {
    measure();
    if (innerWidth !== width) redraw(hosts);
    width = innerWidth;
  });
  measure();

  addEventListener("beforeprint", () => {
    hosts.filter((host) => !host.dataset.drawn).forEach(draw);
    document.querySelectorAll("details.group").forEach((group) => (group.open = true));
  });

  // One click hides or shows a scheme in all panels of its figure; a double click, or one with Shift, shows it alone, or
  // all again.
  for (const legend of document.querySelectorAll(".legend")) {
    const entries = [...legend.querySelectorAll("button")];
    const own = [...legend.closest("section").querySelectorAll(".plot")];
    const shown = (entry) => entry.getAttribute("aria-pressed") === "true";
    const press = (wanted) => {
      for (const entry of entries) entry.setAttribute("aria-pressed", String(wanted(entry)));
      redraw(own);
    };
    const only = (chosen) => {
      const alone = entries.every((entry) => shown(entry) === (entry === chosen));
      press((entry) => alone || entry === chosen);
    };
    legend.addEventListener("click", ({ target, shiftKey }) => {
      const chosen = target.closest("button");
      if (!chosen) return;
      if (shiftKey) only(chosen);
      else press((entry) => shown(entry) !== (entry === chosen));
    });
    legend.addEventListener("dblclick", ({ target }) => target.closest("button") && only(target.closest("button")));
  }

  // Code to paste. Where the clipboard is closed to a file, the text is selected instead, ready to be copied.
  for (const button of document.querySelectorAll("button.copy")) {
    const code = button.parentElement.querySelector("code"), words = button.textContent;
    button.addEventListener("click", async () => {
      getSelection().selectAllChildren(code);
      const copied = await navigator.clipboard?.writeText(code.textContent).then(() => true, () => false) || document.execCommand("copy");
      button.textContent = copied ? "Copied" : "Selected";
      setTimeout(() => (button.textContent = words), 2000);
    });
  }

  // A link to what lies behind a fold opens it.
  const open = () => {
    for (let fold = document.getElementById(location.hash.slice(1))?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  };
  addEventListener("hashchange", open);
  open();
})();
