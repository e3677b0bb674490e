// Search fields: each filters one list of entries that can be opened.
//
// Rows of a table are filtered one by one, and an entry with a matching row is opened; entries without rows to
// filter are kept or hidden as a whole.

function filtered(list, words) {
  let n = 0;
  for (const entry of list.children) {
    const own = entry.querySelector("summary").textContent.toLowerCase();
    const rows = list.id === "attributes" ? [...entry.querySelectorAll("tbody tr")] : [];
    const whole = own.includes(words);
    let found = 0;
    for (const row of rows) {
      const match = whole || row.querySelector(".name").textContent.toLowerCase().includes(words);
      row.hidden = !match;
      if (match) found += 1;
    }
    entry.hidden = !(whole || found > 0);
    if (words && found > 0) entry.open = true;
    n += rows.length ? found : whole ? 1 : 0;
  }
  return n;
}

for (const field of document.querySelectorAll("[data-filter]")) {
  const list = byId(field.dataset.filter);
  const count = byId(`${field.dataset.filter}-count`);
  field.addEventListener("input", () => {
    const words = field.value.trim().toLowerCase();
    const n = filtered(list, words);
    count.textContent = words ? `${n} found` : "";
  });
}
