"use strict";
// Draws one panel as SVG: axes, bands, lines, points, bars, and what a reader points at. Colours are CSS variables, so
// that the theme may change at any time; marks are symbols of the page, so that legend and lines show the same.
const Plot = (() => {
  const space = "http://www.w3.org/2000/svg";
  const element = (name, attributes = {}, text) => {
    const made = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const CHARACTER = 6.5; // pixels, of the numbers on the axes
  const NEAR = 48; // pixels to the point that a reader points at
  const MARKERS = 9; // shown of a long line
  let clips = 0;

  const number = (value) => {
    if (!value) return "0";
    const [digits, power] = value.toExponential(2).split("e");
    if (power >= -4 && power < 5) return String(Number(value.toPrecision(3))).replace("-", "−");
    return `${String(Number(digits)).replace("-", "−")}·10${[...String(Number(power))].map((sign) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign] ?? "⁻").join("")}`;
  };

  // Only for axes that were zoomed: the whole one has its numbers from the page.
  const ticks = ({ log, percent }, low, high) => {
    const unit = (high - low) / 5;
    const step = [1, 2, 5, 10].map((factor) => factor * 10 ** Math.floor(Math.log10(unit))).find((step) => step >= unit);
    const powers = log && Math.log10(high / low) > 2;
    const first = powers ? Math.ceil(Math.log10(low)) : Math.ceil(low / step);
    const last = powers ? Math.floor(Math.log10(high)) : Math.floor(high / step);
    const every = powers ? Math.ceil((last - first + 1) / 7) : 1;
    const found = [];
    for (let i = first; i <= last; i += every) found.push(powers ? 10 ** i : i * step);
    return found.map((value) => [value, percent ? `${number(100 * value)} %` : number(value)]);
  };

  const along = ({ log }, [low, high], from, to) => {
    const place = log ? Math.log : (value) => value;
    const back = log ? Math.exp : (value) => value;
    const scale = (to - from) / (place(high) - place(low));
    const at = (value) => (log && value <= 0 ? NaN : from + (place(value) - place(low)) * scale);
    at.value = (pixel) => back(place(low) + (pixel - from) / scale);
    return at;
  };

  // Pieces of points that are known, and of which a logarithmic axis knows a place.
  const pieces = (xs, ys, at) => {
    const found = [[]];
    xs.forEach((x, i) => {
      const point = ys[i] === null ? [NaN] : at(x, ys[i]);
      if (point.every(Number.isFinite)) found.at(-1).push([...point, i]);
      else if (found.at(-1).length) found.push([]);
    });
    return found.filter((piece) => piece.length);
  };
  const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  const stairs = (points) => points.map(([x, y], i) => (i ? `H${x.toFixed(1)}V${y.toFixed(1)}` : `M${x.toFixed(1)} ${y.toFixed(1)}`)).join("");

  // What is drawn, and all that can be pointed at.
  const draw = (host, panel, hidden, view) => {
    const width = Math.max(host.clientWidth, 200), height = Math.max(host.clientHeight, 160);
    const { x: across, y: up } = panel;
    const [xs, ys] = [view?.x ?? [across.low, across.high], view?.y ?? [up.low, up.high]];
    const marked = { x: view ? ticks(across, ...xs) : across.ticks, y: view ? ticks(up, ...ys) : up.ticks };
    if (across.names) marked.x = across.ticks;
    const longest = Math.max(...marked.y.map(([, text]) => text.length), 2);
    const box = { left: 14 + CHARACTER * longest, right: width - 14, top: panel.marks.length ? 20 : 8, bottom: height - (across.title ? 42 : 26) };
    const x = along(across, xs, box.left, box.right), y = along(up, ys, box.bottom, box.top);
    const at = (one, other) => [x(one), y(other)];
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    const put = (parent, ...made) => (parent.append(...made), made[0]);
    const clip = `clip-${++clips}`;
    put(svg, element("clipPath", { id: clip })).append(element("rect", { x: box.left, y: box.top - 4, width: box.right - box.left, height: box.bottom - box.top + 8 }));
    const room = across.names ? 0 : Math.max(30, CHARACTER * Math.max(...marked.x.map(([, text]) => text.length)) + 12);
    let end = -Infinity;
    for (const [value, text] of marked.x) {
      const place = x(value);
      if (place < box.left - 1 || place > box.right + 1) continue;
      if (!across.names) put(svg, element("path", { class: "grid", d: `M${place} ${box.top}V${box.bottom}` }));
      if (place - end < room) continue; // numbers that would overlap
      end = place;
      put(svg, element("text", { x: place, y: box.bottom + 16, "text-anchor": "middle" }, text));
    }
    for (const [value, text] of marked.y) {
      put(svg, element("path", { class: "grid", d: `M${box.left} ${y(value)}H${box.right}` }));
      put(svg, element("text", { x: box.left - 7, y: y(value) + 4, "text-anchor": "end" }, text));
    }
    put(svg, element("path", { class: "axis", d: `M${box.left} ${box.top}V${box.bottom}H${box.right}` }));
    if (across.title) put(svg, element("text", { class: "title", x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, across.title));
    for (const mark of panel.marks) {
      const ends = mark.x === null ? [box.left, box.right] : [x(mark.x - 0.4), x(mark.x + 0.4)];
      put(svg, element("path", { class: "mark", d: `M${ends[0]} ${y(mark.y)}H${ends[1]}` }));
      const place = mark.x === null ? { x: box.right - 2, "text-anchor": "end" } : { x: x(mark.x), "text-anchor": "middle" };
      put(svg, element("text", { class: "halo", ...place, y: y(mark.y) - 4 }, mark.text));
    }
    const inside = put(svg, element("g", { "clip-path": `url(#${clip})` }));
    const targets = [];
    for (const line of panel.lines) {
      if (hidden.has(line.look)) continue;
      const group = put(inside, element("g", { class: `line ${line.kind}`, "data-name": line.name, style: `--own:var(${line.look})` }));
      const own = line.x.map((place, i) => ({ line, i, x: x(place), y: line.y[i] === null ? NaN : y(line.y[i]) }));
      targets.push(own.filter((target) => Number.isFinite(target.x + target.y) && target.y >= box.top - 9 && target.y <= box.bottom + 9 && target.x >= box.left - 9 && target.x <= box.right + 9));
      if (line.kind === "bars") {
        bars(group, line, x, y, ys, put);
        continue;
      }
      if (line.low && line.kind === "lines") for (const above of pieces(line.x, line.high, at)) {
        const below = above.map(([place, , i]) => [place, Number.isFinite(y(line.low[i])) ? y(line.low[i]) : box.bottom]);
        put(group, element("path", { class: "band", d: `${path([...above, ...below.reverse()])}Z` }));
      }
      if (line.theory) {
        for (const piece of pieces(line.theory.x, line.theory.y, at)) {
          const d = piece.length > 1 ? path(piece) : `M${piece[0][0] - 8} ${piece[0][1]}h16`;
          put(group, element("path", { class: "theory", d, "stroke-dasharray": line.kind === "lines" ? "5 4" : line.dash }));
        }
      }
      if (line.low && (line.kind === "points" || line.kind === "joined")) line.x.forEach((place, i) => {
        const ends = [line.low[i], line.high[i]].map((end) => (end === null ? NaN : y(end)));
        if (ends.every(Number.isFinite)) put(group, element("path", { class: "error", d: `M${x(place)} ${ends[0]}V${ends[1]}` }));
      });
      const shown = pieces(line.x, line.y, at);
      if (line.kind === "lines" || line.kind === "joined") for (const piece of shown) put(group, element("path", { class: "curve", d: path(piece), "stroke-dasharray": line.dash }));
      if (line.kind === "stairs") for (const piece of shown) put(group, element("path", { class: line.dash ? "curve" : "curve thick", d: stairs(piece), "stroke-dasharray": line.dash }));
      if (line.mark) for (const piece of shown) {
        const size = line.kind === "points" && line.x.length > 12 ? 10 : 16;
        const every = line.kind === "lines" ? Math.max(1, Math.ceil(line.x.length / MARKERS)) : 1;
        for (const [place, top, i] of piece) if (i % every === 0 || piece.length === 1) {
          put(group, element("use", { href: `#mark-${line.mark}`, x: place - size / 2, y: top - size / 2, width: size, height: size, class: line.open ? "open" : "" }));
        }
      }
    }
    for (const { x: place, y: top, text } of panel.labels) {
      const left = x(place) > (box.left + box.right) / 2;
      put(svg, element("text", { class: "label halo", x: x(place) + (left ? -11 : 11), y: y(top) + (panel.lines.some((line) => line.kind === "stairs") && !left ? -7 : 4), "text-anchor": left ? "end" : "start" }, text));
    }
    host.querySelector("svg")?.remove();
    host.prepend(svg);
    return { box, x, y, svg, targets: targets.filter((own) => own.length) };
  };

  const bars = (group, line, x, y, ys, put) => line.x.forEach((place, i) => {
    if (line.y[i] === null) return;
    const [from, to] = [x(place - line.width[i] / 2), x(place + line.width[i] / 2)];
    const base = y(Math.max(ys[0], 0) || ys[0]), top = y(line.y[i]);
    put(group, element("rect", { x: from + 1, y: Math.min(top, base), width: Math.max(1, to - from - 2), height: Math.abs(base - top) }));
    const ends = line.low && [line.low[i], line.high[i]].map((end) => (end === null ? NaN : y(end)));
    if (ends?.every(Number.isFinite)) put(group, element("path", { class: "error ink", d: `M${(from + to) / 2} ${ends[0]}V${ends[1]}` }));
    const text = `${line.tag} ${number(line.y[i])}`.trim();
    const long = CHARACTER * text.length + 8, high = Math.abs(base - top), middle = (from + to) / 2;
    if (to - from > long && high > 22) put(group, element("text", { class: "inside", x: middle, y: (base + top) / 2 + 4, "text-anchor": "middle" }, text));
    else if (to - from > 12 && high > long) put(group, element("text", { class: "inside", x: 8 - base, y: middle + 4, transform: "rotate(-90)" }, text));
    else if (to - from > 12) put(group, element("text", { class: "halo", x: 8 - (ends?.[1] ?? top), y: middle + 4, transform: "rotate(-90)" }, text));
  });

  const nearest = (targets, x, y) => {
    let best = null, least = NEAR ** 2;
    for (const own of targets) for (const target of own) {
      const away = (target.x - x) ** 2 + (target.y - y) ** 2;
      if (away < least) [best, least] = [target, away];
    }
    return best;
  };

  const told = (panel, { line, i }) => {
    const where = panel.x.names ? panel.x.ticks.reduce((best, tick) => (Math.abs(tick[0] - line.x[i]) < Math.abs(best[0] - line.x[i]) ? tick : best))[1] : `${panel.x.title} ${number(line.x[i])}`;
    const spread = line.high && line.high[i] !== null && Number.isFinite(line.high[i]) ? ` ± ${number(line.high[i] - line.y[i])}` : "";
    const seeds = line.seeds > 1 ? `${line.seeds} seeds` : "";
    return [line.name, where, `${panel.y.title} ${number(line.y[i])}${spread}`, seeds].filter(Boolean);
  };

  return { draw, nearest, told, element };
})();
