"use strict";
// The live page: reads server-sent events from /events, and draws. No other request but those of the operator.

const at = (id) => document.getElementById(id);
const rounds = []; // rounds that ended, the oldest first
let open = null; // the open round
let heard = 0; // when the last event came
const MOST = 200;

// --- numbers for people ---

const number = (x, digits = 3) => (x === null || x === undefined ? "–" : x === 0 ? "0" : format(x, digits));
function format(x, digits) {
  const size = Math.abs(x);
  if (size >= 1e5 || size < 1e-3) return x.toExponential(digits - 1).replace("e+", "e");
  return x.toLocaleString("en", { maximumSignificantDigits: digits });
}
function bytes(x) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (x >= 1000 && unit < units.length - 1) { x /= 1000; unit += 1; }
  return `${number(x)} ${units[unit]}`;
}
function seconds(x) {
  if (x < 90) return `${Math.round(x)} s`;
  return x < 5400 ? `${Math.round(x / 60)} min` : `${number(x / 3600)} h`;
}
// (R2/R1)/(n − 1): how alike the nodes are, whatever their number.
const alike = (row) => (row.ratio === null || row.nodes < 2 ? null : row.ratio / (row.nodes - 1));

// --- elements ---

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text; // names come from outside: text, never markup
  if (kind) made.className = kind;
  return made;
}
function table(where, columns, lines) {
  const head = element("tr");
  head.append(...columns.map((column) => element("th", column)));
  const body = lines.map((cells) => {
    const line = element("tr");
    line.append(...cells.map((cell) => element("td", cell)));
    return line;
  });
  where.replaceChildren(head, ...body);
}
function shape(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// --- a plot of one figure over rounds ---

function ticks(low, high, log) {
  if (log) {
    const step = Math.max(1, Math.ceil((high - low) / 5));
    const within = high - low > 2 ? [0] : high - low > 0.7 ? [0, Math.log10(2), Math.log10(5)] : [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9].map(Math.log10);
    const found = [];
    for (let e = Math.floor(low); e <= high; e += step) found.push(...within.map((part) => e + part).filter((t) => t >= low && t <= high));
    return found.length > 1 ? found : [low, high];
  }
  const rough = (high - low) / 4 || 1;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = size * [1, 2, 5, 10].find((each) => each * size >= rough);
  const found = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step / 1e6; t += step) found.push(Math.abs(t) < step / 1e6 ? 0 : t);
  return found;
}

// points: {x, y, low, high, bound}; those without y are gaps.
function plot(where, points, { log = false, from = null, to = null, what }) {
  const shown = points.filter((p) => p.y !== null && (!log || p.y > 0));
  if (shown.length === 0) {
    where.replaceChildren(element("p", "Nothing yet: it is known once a round has ended.", "soft"));
    return;
  }
  const width = where.clientWidth, height = where.clientHeight, left = 58, right = 12, top = 8, bottom = 34;
  const scale = log ? Math.log10 : (v) => v;
  const ends = shown.flatMap((p) => [p.y, p.low, p.high]).filter((v) => v !== null && v !== undefined && (!log || v > 0)).map(scale);
  let low = from ?? Math.min(...ends), high = to ?? Math.max(...ends);
  if (high - low < 1e-9) { low -= log ? 0.5 : Math.abs(low) / 2 || 1; high += log ? 0.5 : Math.abs(high) / 2 || 1; }
  const first = rounds[0].round, last = Math.max(rounds[rounds.length - 1].round, first + 1);
  const x = (v) => left + ((v - first) / (last - first)) * (width - left - right);
  const y = (v) => top + ((high - Math.min(high, Math.max(low, v))) / (high - low)) * (height - top - bottom);
  const drawn = [];
  for (const t of ticks(low, high, log)) {
    drawn.push(shape("line", { x1: left, x2: width - right, y1: y(t), y2: y(t) }));
    drawn.push(shape("text", { x: left - 6, y: y(t) + 4, "text-anchor": "end" }, number(log ? 10 ** t : t, 2)));
  }
  for (const t of ticks(first, last, false).filter((t) => Number.isInteger(t))) {
    drawn.push(shape("text", { x: x(t), y: height - 18, "text-anchor": "middle" }, t));
  }
  drawn.push(shape("text", { x: (left + width - right) / 2, y: height - 3, "text-anchor": "middle" }, "round"));
  const edge = (p, v) => `${x(p.x).toFixed(1)},${y(log ? scale(Math.max(v, 10 ** low)) : v).toFixed(1)}`;
  for (const some of neighbours(shown)) {
    const up = some.map((p) => edge(p, p.high)), down = some.map((p) => edge(p, p.low)).reverse();
    drawn.push(shape("path", { class: "band", d: `M${[...up, ...down].join("L")}Z` }));
  }
  drawn.push(shape("path", { d: `M${shown.map((p) => `${x(p.x).toFixed(1)},${y(scale(p.y)).toFixed(1)}`).join("L")}` }));
  if (shown.length <= 60) {
    for (const p of shown) {
      const dot = shape("circle", { cx: x(p.x), cy: y(scale(p.y)), r: 3, class: p.bound ? "bound" : "" });
      dot.append(shape("title", {}, `round ${p.x}: ${number(p.y)}`));
      drawn.push(dot);
    }
  }
  const newest = shown[shown.length - 1];
  const svg = shape("svg", { role: "img", "aria-label": `${what} over rounds ${shown[0].x} to ${newest.x}, now ${number(newest.y)}` });
  svg.append(...drawn);
  where.replaceChildren(svg);
}

// Runs of points that have an interval.
function neighbours(points) {
  const runs = [[]];
  for (const p of points) {
    if (p.low !== null && p.low !== undefined) runs[runs.length - 1].push(p);
    else runs.push([]);
  }
  return runs.filter((run) => run.length > 1);
}

// --- the page ---

function tiles() {
  const ended = rounds.filter((row) => !row.skipped);
  const last = ended[ended.length - 1];
  const sum = (name) => rounds.reduce((total, row) => total + row[name], 0);
  const refused = rounds.reduce((total, row) => total + Object.values(row.refused).reduce((a, b) => a + b, 0), 0);
  const wanted = open.policy.wanted ?? open.invited;
  const left = open.left === null ? null : Math.max(0, open.left - (Date.now() - heard) / 1000);
  const now = Object.values(open.refused).reduce((a, b) => a + b, 0);
  const told = [
    [`${open.came.length}${wanted ? ` of ${wanted}` : ""}`, `nodes here, ${open.policy.minimum} needed`],
    [left === null ? "–" : seconds(left), left === null ? (open.paused ? "paused" : "it waits for nodes") : "until it is over"],
    [last ? number(last.relative_error ?? last.error) : "–", last && last.relative_error !== null ? "error of the last mean, relative" : "error of the last mean"],
    [sum("dense_bytes") ? `${number(100 * (1 - sum("bytes") / sum("dense_bytes")))} %` : "–", `saved: ${bytes(sum("bytes"))} instead of ${bytes(sum("dense_bytes"))}`],
    [last ? number(alike(last), 2) : "–", "correlation between nodes"],
    [String(refused + now), `refused, and ${sum("forgotten")} nodes forgotten`],
  ];
  at("tiles").replaceChildren(...told.map(([value, what]) => {
    const tile = element("li");
    tile.append(element("b", value), element("span", what));
    return tile;
  }));
}

function status() {
  const badge = at("state");
  const silent = Date.now() - heard > 40000;
  const [text, kind] = silent ? ["connection lost", "bad"]
    : open.failure ? [`cannot go on: ${open.failure}`, "bad"]
    : open.paused ? ["paused", ""] : ["open", "good"];
  badge.textContent = text;
  badge.className = `badge ${kind}`;
}

function figures() {
  const points = (y, more = () => ({})) => rounds.filter((row) => !row.skipped).map((row) => ({ x: row.round, y: y(row), ...more(row) }));
  const interval = (row) => ({ bound: row.error_is_bound, low: row.interval && row.interval[0], high: row.interval && row.interval[1] });
  plot(at("error"), points((row) => (row.error > 0 ? row.error : null), interval), { log: true, what: "Error of the mean" });
  plot(at("correlation"), points(alike), { what: "Correlation" });
  plot(at("nodes"), points((row) => row.nodes), { from: 0, what: "Nodes" });
}

function lists() {
  at("came").replaceChildren(...(open.came.length ? open.came.map((name) => element("span", name)) : [element("em", "nobody yet")]));
  const reasons = {};
  for (const refused of [...rounds.map((row) => row.refused), open.refused]) {
    for (const [reason, count] of Object.entries(refused)) reasons[reason] = (reasons[reason] || 0) + count;
  }
  const lines = Object.entries(reasons).sort((a, b) => b[1] - a[1]).map(([reason, count]) => [reason, String(count)]);
  if (lines.length) {
    const made = element("table");
    table(made, ["reason", `in ${rounds.length + 1} rounds`], lines);
    at("refused").replaceChildren(made);
  } else {
    at("refused").replaceChildren(element("p", "None.", "soft"));
  }
}

function choice() {
  at("why").hidden = open.why === null;
  if (open.why === null) return;
  const { encoder, values, expected, others, energy, residual, correlation, drift } = open.why;
  at("why-text").textContent = expected === null
    ? `${encoder} with ${values} values; after the first round it goes by what was found.`
    : `${encoder} with ${values} values promises an error of ${number(expected)}. Found: what the memory did not expect is `
      + `${number(residual)} of an energy of ${number(energy)}; correlation ${number(correlation, 2)}; drift ${number(drift, 2)}.`;
  table(at("why-table"), ["option", "promised error"], others.map(([name, error]) => [name, number(error)]));
}

function history() {
  const columns = ["round", "ended", "nodes", "error", "± s.e.", "interval", "bytes", "of dense", "correlation", "refused", "forgotten"];
  const lines = rounds.slice(-25).reverse().map((row) => [
    String(row.round),
    row.skipped ? "skipped" : new Date(row.closed).toLocaleTimeString(),
    String(row.nodes),
    (row.error_is_bound ? "≤ " : "") + number(row.error),
    number(row.error_se, 2),
    row.interval ? `${number(row.interval[0])} – ${number(row.interval[1])}` : "–",
    bytes(row.bytes),
    row.dense_bytes ? `${number((100 * row.bytes) / row.dense_bytes)} %` : "–",
    number(alike(row), 2),
    String(Object.values(row.refused).reduce((a, b) => a + b, 0)),
    String(row.forgotten),
  ]);
  table(at("rounds"), columns, lines);
}

const EVENTS = {
  open(told) {
    open = told;
    at("round").textContent = open.round;
    document.title = `round ${open.round} – sparsemean`;
    at("scheme").textContent = `${open.scheme}; dimension ${open.dim.toLocaleString("en")}, ${open.payload_bytes.toLocaleString("en")} bytes a payload; ${open.invited} nodes may come`;
    status(); tiles(); lists(); choice();
  },
  history(told) {
    for (const row of told) if (!rounds.length || row.round > rounds[rounds.length - 1].round) rounds.push(row);
    rounds.splice(0, rounds.length - MOST);
    figures(); history();
  },
};

// --- events: read with fetch, which unlike EventSource can carry the operator's token ---

const wait = (ms) => new Promise((resume) => setTimeout(resume, ms));
const credential = () => (at("token").value ? { Authorization: `Bearer ${at("token").value}` } : {});

async function listen() {
  for (;;) {
    try {
      const answer = await fetch("/events", { headers: credential() });
      if (answer.ok) await read(answer.body.pipeThrough(new TextDecoderStream()).getReader());
      else show(answer.status === 401 && !at("token").value ? "private: enter a token below" : (await answer.json()).why);
    } catch (error) {
      show("connection lost; trying again");
    }
    await wait(2000);
  }
}
function show(text) {
  at("state").textContent = text;
  at("state").className = "badge bad";
}
async function read(reader) {
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const found = /^event: (\w+)\ndata: (.*)$/.exec(part);
      if (found && EVENTS[found[1]]) { heard = Date.now(); EVENTS[found[1]](JSON.parse(found[2])); }
    }
  }
}

async function operate(action) {
  const names = action === "forget" || action === "rotate";
  const body = names ? JSON.stringify({ node: at("node").value }) : "";
  try {
    const answer = await fetch(`/v1/admin/${action}`, { method: "POST", headers: credential(), body });
    const told = await answer.json();
    at("done").textContent = answer.ok ? (told.token ? `New token, shown once: ${told.token}` : `Done: ${action}.`) : `Not done: ${told.why}`;
  } catch (error) {
    at("done").textContent = "Not done: the service does not answer.";
  }
}

at("operator").addEventListener("submit", (event) => event.preventDefault()); // Enter in a field does nothing
for (const button of document.querySelectorAll("#operator button")) button.addEventListener("click", () => operate(button.name));
addEventListener("resize", () => { if (rounds.length) figures(); });
setInterval(() => { if (open) { status(); tiles(); } }, 1000);
listen();
