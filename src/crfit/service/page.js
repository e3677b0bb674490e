"use strict";
// Sends what was entered to the service, shows labels, and collects corrections. Everything from the user or the
// service enters the page as text.

const facts = JSON.parse(byId("facts").textContent);
const LOW = 0.8; // probabilities below it stand out
const corrections = new Map(); // card -> what is right

function element(tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

function tell(message, bad) {
  byId("status").textContent = message;
  byId("status").classList.toggle("bad", Boolean(bad));
}

// --- from the text area to sequences ---

function rowsOf(block) {
  return block.split("\n").filter((line) => line.trim()).map((line) => line.trim().split(/[ \t]+/));
}

function sequencesOf(text) {
  if (facts.kind === "columns") {
    return text.split(/\n[ \t]*\n/).map(rowsOf).filter((rows) => rows.length).map((tokens) => ({ tokens }));
  }
  const lines = text.split("\n").filter((line) => line.trim());
  if (facts.kind === "text") return lines.map((line) => ({ text: line.trim() }));
  return lines.map((line, i) => {
    let value;
    try {
      value = JSON.parse(line);
    } catch {
      throw new Error(`Line ${i + 1} is not JSON.`);
    }
    if (facts.kind === "items") return { attributes: value.attributes ?? value };
    return { tokens: Array.isArray(value) ? value : value.tokens ?? value.attributes };
  });
}

// A short name of a token: the word, the first column, or its first attribute.
function nameOf(token) {
  if (typeof token === "string") return token;
  if (Array.isArray(token)) return String(token[0] ?? "");
  if (token && typeof token.token === "string") return token.token;
  const [first] = Object.entries(token ?? {});
  return first ? (typeof first[1] === "string" ? first[1] : first[0]) : "";
}

// --- labels ---

const PREFIX = /^([BIESLU])-(.*)$/s;
const typeOf = (label) => (PREFIX.exec(label) ?? [, , label])[2];
const types = [...new Set(facts.labels.map(typeOf))].filter((type) => type !== "O");

const turn = types.length > 12 ? 137.5 : 360 / types.length;

// A token inside a span is drawn next to the previous one.
function paint(chips, labels) {
  chips.forEach((chip, i) => {
    const type = typeOf(labels[i]);
    chip.classList.toggle("outside", labels[i] === "O");
    chip.classList.toggle("inside", i > 0 && /^[IEL]-/.test(labels[i]) && type === typeOf(labels[i - 1]));
    chip.style.setProperty("--hue", String(Math.round((types.indexOf(type) * turn + 230) % 360)));
  });
}

// The choices are made when the list is opened: there may be thousands of labels.
function chooser(label, name, changed) {
  const select = element("select");
  select.setAttribute("aria-label", `Label of ${name}`);
  select.append(new Option(label, label));
  const fill = () => {
    if (select.length > 1) return;
    const chosen = select.value;
    select.replaceChildren(...facts.labels.map((one) => new Option(one, one)));
    select.value = chosen;
  };
  for (const event of ["focus", "pointerdown", "keydown"]) select.addEventListener(event, fill);
  select.addEventListener("change", () => changed(select.value));
  return select;
}

function chance(p) {
  return element("span", p >= 0.9995 ? "1" : p.toFixed(3).slice(1), p < LOW ? "chance low" : "chance");
}

function tokenChip(name, label, marginals, changed) {
  const chip = element("li", undefined, "token");
  let shown = chance(marginals[label] ?? 0);
  const select = chooser(label, name, (value) => {
    chip.classList.toggle("changed", value !== label);
    const next = chance(marginals[value] ?? 0);
    shown.replaceWith(next);
    shown = next;
    changed(value);
  });
  chip.append(element("span", name, "word"), select, shown);
  return chip;
}

function card(given, answer) {
  const box = element("div", undefined, "card");
  const item = facts.kind === "items";
  const tokens = item ? [given.attributes] : answer.tokens ?? given.tokens;
  const labels = item ? [answer.label] : [...answer.labels];
  const marginals = item ? [answer.probabilities] : answer.marginals;
  const list = element("ul", undefined, "tokens");
  const add = element("button", "Add to corrections");
  add.type = "button";
  const corrected = () => {
    if (item) return { label: labels[0], attributes: given.attributes };
    return { tokens: tokens.map((one) => (given.text === undefined ? one : one.token)), labels: [...labels] };
  };
  const chips = tokens.map((token, i) =>
    tokenChip(nameOf(token), labels[i], marginals[i], (value) => {
      labels[i] = value;
      paint(chips, labels);
      if (corrections.has(box)) keep();
    }),
  );
  paint(chips, labels);
  list.append(...chips);
  const keep = () => {
    corrections.set(box, corrected());
    add.textContent = "Remove from corrections";
    show();
  };
  add.addEventListener("click", () => {
    if (corrections.delete(box)) {
      add.textContent = "Add to corrections";
      show();
    } else {
      keep();
    }
  });
  const foot = element("div", undefined, "controls");
  foot.append(add, element("span", `probability that the model is right: ${answer.probability.toFixed(3)}`, "quiet"));
  box.append(list, foot);
  return box;
}

// --- corrections ---

const lines = () => [...corrections.values()].map((one) => `${JSON.stringify(one)}\n`).join("");

// As the file that a model of columns was trained on.
function columns() {
  const row = (token, label) => `${[token, label].flat().join("\t")}\n`;
  const sequences = [...corrections.values()].map(({ tokens, labels }) => tokens.map((one, i) => row(one, labels[i])));
  return sequences.map((rows) => `${rows.join("")}\n`).join("");
}

function show() {
  byId("lines").value = lines();
  for (const id of ["copy", "download", "columns", "clear"]) byId(id).disabled = corrections.size === 0;
}

byId("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(lines());
    tell("Copied.");
  } catch {
    byId("lines").select();
    tell("Selected: copy it with Ctrl-C.");
  }
});

function download(name, text) {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

byId("download").addEventListener("click", () => download("corrections.jsonl", lines()));
byId("columns").addEventListener("click", () => download("corrections.txt", columns()));

byId("clear").addEventListener("click", () => {
  corrections.clear();
  for (const button of document.querySelectorAll(".card button")) button.textContent = "Add to corrections";
  show();
});

// Corrections live in this page only.
addEventListener("beforeunload", (event) => {
  if (corrections.size) event.preventDefault();
});

// --- asking ---

async function ask(sequences) {
  const response = await fetch("batch", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(facts.kind === "items" ? { sequences, marginals: true } : { sequences, marginals: true, nbest: 1 }),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.message);
  return answer.sequences;
}

byId("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  byId("go").disabled = true;
  tell("…");
  try {
    const given = sequencesOf(byId("input").value);
    if (given.length > facts.sequences) throw new Error(`At most ${facts.sequences} sequences at a time.`);
    const found = given.length ? await ask(given) : [];
    // What was added to the corrections stays there, and stays in sight.
    const kept = [...byId("results").children].filter((box) => corrections.has(box));
    byId("results").replaceChildren(...found.map((answer, i) => card(given[i], answer)), ...kept);
    tell(given.length ? "" : "Enter something first.");
  } catch (error) {
    tell(error.message || "The service does not answer.", true);
  } finally {
    byId("go").disabled = false;
  }
});

byId("input").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("form").requestSubmit();
});
