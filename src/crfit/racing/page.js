// The chart of a race and the controls of its page.
//
// The data block holds the curves as columns, and for each quantity the limits that Python computed: distances
// below the lower limit are drawn at it, a diverging curve ends at the upper one. Everything that is drawn
// follows from `state`; each control changes it and redraws. Names and messages are text: what the plotting
// library would read as markup is escaped.

const race = JSON.parse(byId("race").textContent);
const chart = byId("chart");
const quantities = Object.fromEntries(race.quantities.map((quantity) => [quantity.name, quantity]));
const state = {
  x: "seconds",
  y: race.quantities[0]?.name, // nothing to draw without one
  log: { x: true, y: true },
  hidden: new Set(), // numbers of entries
  lit: null, // the entry whose name the mouse is on
  zoom: null, // ranges that the reader chose, on the scale of the axes
};

// --- text and colours --------------------------------------------------------------------------------------

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function spelled(value, digits = 4) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) return value.toExponential(2).replace("e+", "e");
  return value.toLocaleString("en", { maximumSignificantDigits: digits });
}

// A colour of the style sheet as the theme has it now.
function colour(name) {
  const probe = byId("probe");
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

const fontFamily = getComputedStyle(document.body).fontFamily;

// --- from columns to lines ---------------------------------------------------------------------------------

// On a logarithmic axis scores are drawn by their distance to 100, which shows the last percents.
const turned = () => quantities[state.y].kind === "score" && state.log.y;

const onAxis = (value, axis) => (state.log[axis] ? Math.log10(value) : value);

function line(curve) {
  const { kind, low, high, worst } = quantities[state.y];
  const edged = kind === "distance" && state.log.y;
  const top = edged ? high : kind === "score" ? Infinity : worst;
  const points = [];
  for (let i = 0; i < curve.columns.seconds.length; i++) {
    const x = curve.columns[state.x][i];
    const value = curve.columns[state.y][i];
    if (value == null || (state.log.x && x <= 0)) continue;
    let y = edged ? Math.max(value, low) : turned() ? Math.max(100 - value, 0.01) : Math.min(value, top);
    if (state.log.y && y <= 0) continue;
    if (edged) y = Math.min(y, top);
    points.push({ i, x, y, atEdge: edged && value < low });
    if (value > top) break;
  }
  return points;
}

const HOVER = {
  objective: "F",
  relative_gap: "relative gap",
  gap: "gap",
  f1: "F1",
  accuracy: "accuracy",
  sequence_accuracy: "sequence accuracy",
  grad_inf: "largest gradient entry",
};

function hoverText({ label, columns }, i) {
  const effort = `${spelled(columns.seconds[i])} s, ${spelled(columns.passes[i])} passes`;
  const rows = [`<b>${escaped(label)}</b>`, `${effort}, iteration ${columns.iteration[i]}`];
  for (const [name, title] of Object.entries(HOVER)) {
    const value = columns[name]?.[i];
    if (value != null) rows.push(`${title} ${spelled(value, name === "objective" ? 9 : 4)}`);
  }
  return rows.join("<br>");
}

function trace(curve, number, points) {
  const ink = colour(`entry-${number}`);
  const between = points.length <= 40 ? 5 : 0; // few points are shown as such
  const last = points.length - 1;
  const crossed = (k) => curve.diverged && k === last;
  const lit = state.lit === null || state.hidden.has(state.lit) ? null : state.lit === number;
  return {
    opacity: lit === false ? 0.25 : 1,
    type: "scatter",
    mode: "lines+markers",
    name: escaped(curve.label),
    x: points.map((point) => point.x),
    y: points.map((point) => point.y),
    line: { color: ink, width: lit ? 4 : 2, dash: curve.dashes.map((length) => `${length}px`).join(",") || "solid" },
    marker: {
      color: ink,
      opacity: 1,
      line: { width: 1, color: colour("ground") },
      symbol: points.map((point, k) => (crossed(k) ? "x" : point.atEdge ? "triangle-down" : "circle")),
      size: points.map((point, k) => (k < last ? between : crossed(k) || point.atEdge ? 11 : 8)),
    },
    text: points.map((point) => hoverText(curve, point.i)),
    hovertemplate: "%{text}<extra></extra>",
    cliponaxis: false,
  };
}

// --- ranges --------------------------------------------------------------------------

function extent(values, margin) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)]; // too many to spread
  const room = high > low ? margin * (high - low) : Math.abs(high) * 0.1 || 1;
  return [low - room, high + room];
}

function wholeRange(lines) {
  const points = lines.flatMap((each) => each.points);
  if (!points.length) return { x: [0, 1], y: [0, 1] };
  const x = extent(points.map((point) => onAxis(point.x, "x")), 0.02);
  if (!state.log.x) x[0] = 0;
  let seen = points.map((point) => onAxis(point.y, "y"));
  if (turned()) return { x, y: extent(seen, 0.05).reverse() };
  if (quantities[state.y].kind === "score") {
    // The beginning of the curves, far below what matters, is left out.
    const kept = seen.filter((value) => value >= quantities[state.y].low);
    seen = kept.length ? kept : seen;
  }
  return { x, y: extent(seen, 0.05) };
}

// --- drawing -----------------------------------------------------------------------------------------------

const SCORES = [0, 20, 40, 60, 70, 80, 85, 90, 92, 94, 95, 96, 97, 98, 98.5, 99, 99.5, 99.9];

function axis(which, title, range, narrow) {
  const made = {
    ...{ title: { text: title, standoff: 8 }, type: state.log[which] ? "log" : "linear" },
    ...{ range, autorange: false, nticks: narrow ? 5 : 9, minexponent: 4, separatethousands: true },
    ...{ showline: true, zeroline: false, linecolor: colour("quiet"), gridcolor: colour("grid") },
    ...{ ticks: "outside", ticklen: 4, tickcolor: colour("line"), exponentformat: "power" },
  };
  const decades = Math.abs(range[1] - range[0]);
  if (state.log[which] && decades > 1.2) made.dtick = Math.max(1, Math.ceil(decades / (narrow ? 5 : 8)));
  if (state.log[which] && which === "x") made.exponentformat = "none";
  if (state.log[which] && which === "y") made.tickfont = { size: narrow ? 9 : 10 }; // powers are drawn larger
  if (which === "y" && turned()) {
    delete made.dtick;
    Object.assign(made, { tickvals: SCORES.map((score) => 100 - score), ticktext: SCORES.map(String) });
  }
  return made;
}

// Gaps below the uncertainty of F* mean nothing.
function unsureBand(range) {
  const unsure = race.uncertainty?.[state.y];
  if (!unsure || !state.log.y || Math.log10(unsure) <= range.y[0]) return [];
  const across = { xref: "paper", x0: 0, x1: 1 };
  const look = { type: "rect", layer: "below", line: { width: 0 }, fillcolor: colour("unsure") };
  return [{ ...look, ...across, yref: "y", y0: 10 ** range.y[0], y1: Math.min(unsure, 10 ** range.y[1]) }];
}

function draw() {
  if (!state.y) return;
  const [width, height] = [chart.clientWidth, chart.clientHeight];
  const narrow = width < 560;
  const font = narrow ? 10 : 12;
  const margin = { l: narrow ? 52 : 66, r: 10, t: 10, b: 48 };
  const lines = race.curves
    .map((curve, number) => ({ curve, number, points: line(curve) }))
    .filter(({ number, points }) => points.length && !state.hidden.has(number));
  const range = state.zoom ? structuredClone(state.zoom) : wholeRange(lines);
  const title = quantities[state.y].title;
  const layout = {
    ...{ width, height, margin, shapes: unsureBand(range), showlegend: false },
    ...{ paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)" },
    font: { family: fontFamily, size: font, color: colour("quiet") },
    xaxis: axis("x", race.units[state.x], range.x, narrow),
    yaxis: axis("y", title, range.y, narrow),
    hovermode: "closest",
    hoverdistance: 30,
    hoverlabel: {
      ...{ bgcolor: colour("raised"), bordercolor: colour("quiet"), align: "left" },
      font: { family: fontFamily, color: colour("ink"), size: 13 },
    },
    // On a touch screen a finger scrolls the page.
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
  };
  const traces = lines.map(({ curve, number, points }) => trace(curve, number, points));
  const config = { displayModeBar: false, doubleClick: false, doubleClickDelay: 500, showTips: false };
  Plotly.react(chart, traces, layout, config);
  const shown = `${title} against ${race.units[state.x]}`;
  chart.setAttribute("aria-label", `${shown}; the tables below hold the numbers`);
  byId("reset").disabled = !state.zoom;
}

// --- controls ----------------------------------------------------------------------------------------------

// Draw the whole range again after a change of what is drawn.
function redraw() {
  state.zoom = null;
  draw();
}

function choose(quantity) {
  state.y = quantity;
  state.log.y = quantities[quantity].kind === "distance";
  byId("log-y").checked = state.log.y;
  redraw();
}

function watchChart() {
  byId("y").addEventListener("change", (event) => choose(event.target.value));
  byId("x").addEventListener("change", (event) => {
    state.x = event.target.value;
    redraw();
  });
  for (const which of ["x", "y"]) {
    byId(`log-${which}`).addEventListener("change", (event) => {
      state.log[which] = event.target.checked;
      redraw();
    });
  }
  for (const chip of document.querySelectorAll(".chip:enabled")) {
    for (const [name, lit] of [["pointerenter", Number(chip.dataset.entry)], ["pointerleave", null]]) {
      chip.addEventListener(name, (event) => {
        if (event.pointerType !== "mouse") return; // a finger stays on the name
        state.lit = lit;
        draw();
      });
    }
    chip.addEventListener("click", () => {
      const number = Number(chip.dataset.entry);
      const back = state.hidden.delete(number);
      if (!back) state.hidden.add(number);
      chip.setAttribute("aria-pressed", String(back));
      redraw();
    });
  }
  byId("reset").addEventListener("click", redraw);
  chart.on("plotly_doubleclick", redraw);
  chart.on("plotly_relayout", (changed) => {
    if (!Object.keys(changed).some((key) => key.includes(".range"))) return;
    state.zoom = { x: [...chart.layout.xaxis.range], y: [...chart.layout.yaxis.range] };
    draw();
  });
  let width = chart.clientWidth;
  new ResizeObserver(() => {
    if (chart.clientWidth !== width) draw();
    width = chart.clientWidth;
  }).observe(chart);
}

document.addEventListener("theme", draw);

for (const button of document.querySelectorAll("[data-shows]")) {
  button.addEventListener("click", () => {
    byId("milestones").dataset.unit = button.dataset.shows;
    for (const other of document.querySelectorAll("[data-shows]")) {
      other.setAttribute("aria-pressed", String(other === button));
    }
  });
}

if (state.y) {
  choose(state.y);
  watchChart();
}
