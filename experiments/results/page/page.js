"use strict";
// Scoreboard, rows of claims and charts of the page. Without this script all is readable, and charts are pictures.

const data = JSON.parse(document.getElementById("data").textContent);

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// ---- Scoreboard: filter by verdict and text, sort by any column

function scoreboard() {
  const table = document.getElementById("claims");
  const rows = [...table.tBodies[0].rows];
  const word = document.getElementById("filter-verdict");
  const text = document.getElementById("filter-text");
  const count = document.getElementById("filter-count");
  const place = new Map(rows.map((row, k) => [row, k]));

  function filter() {
    const wanted = text.value.trim().toLowerCase();
    for (const row of rows) {
      const fits = !word.value || row.dataset.verdict === word.value;
      row.hidden = !(fits && row.textContent.toLowerCase().includes(wanted));
    }
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} claims`;
  }

  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = element("button", head.textContent, { type: "button" });
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.cells[column].textContent.trim();
      const compare = column
        ? (a, b) => key(a).localeCompare(key(b), "en", { numeric: true }) || place.get(a) - place.get(b)
        : (a, b) => place.get(a) - place.get(b);
      table.tBodies[0].append(...rows.toSorted((a, b) => (down ? compare(b, a) : compare(a, b))));
    });
  });
  word.addEventListener("change", filter);
  text.addEventListener("input", filter);
  document.getElementById("filters").hidden = false;
  filter();
}

// ---- Rows of claims: closed until a link leads to them, all open in print

function details() {
  const every = [...document.querySelectorAll(".claim details")];
  const contents = document.getElementById("contents");
  contents.open = window.matchMedia("(min-width: 82rem)").matches;
  for (const one of every) one.open = false;

  function show() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (const one of target.querySelectorAll("details")) if (target.matches(".claim, .part")) one.open = true;
    target.closest("details")?.setAttribute("open", "");
    target.scrollIntoView();
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link && link.getAttribute("href") === location.hash) show(); // no hashchange then
  });
  let before = [];
  window.addEventListener("beforeprint", () => {
    before = every.filter((one) => !one.open);
    for (const one of before) one.open = true;
  });
  window.addEventListener("afterprint", () => before.forEach((one) => (one.open = false)));
  window.addEventListener("hashchange", show);
  return show;
}

// ---- Charts: choices, and the row of a point

async function chart(figure) {
  const { spec, fields, columns, rows: tuples } = data.charts[figure.dataset.chart];
  const rows = tuples.map((tuple) => Object.fromEntries(fields.map((field, k) => [field, tuple[k]])));
  const selects = [...figure.querySelectorAll("select")];
  const plot = figure.querySelector(".plot");
  const at = figure.querySelector(".at");
  const table = figure.querySelector(".point");
  const chosen = () => rows.filter((row) => selects.every((s) => !s.value || row[s.dataset.column] === s.value));
  let current = -1;

  function describe(row) {
    return columns.map((column) => row[column]).join(", ") + `: ${row.text}`;
  }

  function show(row) {
    const run = data.runs[row.run];
    const made = element("table");
    made.append(element("caption", describe(row)));
    const body = made.createTBody();
    const link = element("a", row.run, { href: `#${run.anchor}` });
    const cells = [...columns.map((column) => [column, row[column]]), ["value", row.text], ["interval", row.of]];
    cells.push(["run", link], ["measured on", run.where], ["commit", run.code], ["command", element("code", run.command)]);
    for (const [name, value] of cells) {
      const line = body.insertRow();
      line.append(element("th", name, { scope: "row" }));
      line.insertCell().append(value);
    }
    table.replaceChildren(made);
    table.hidden = false;
  }

  function clear() {
    current = -1;
    at.textContent = "";
    table.hidden = true;
  }

  function points() {
    const found = [...plot.querySelectorAll(".points_marks path")];
    const box = new Map(found.map((path) => [path, path.getBoundingClientRect()]));
    const byNames = spec.height && spec.height.step; // names from top to bottom, numbers from left to right
    const [first, second] = byNames ? ["top", "left"] : ["left", "top"];
    return found.sort((a, b) => box.get(a)[first] - box.get(b)[first] || box.get(a)[second] - box.get(b)[second]);
  }

  function step(by) {
    const every = points();
    if (!every.length) return;
    current = current < 0 ? (by > 0 ? 0 : every.length - 1) : (current + by + every.length) % every.length;
    every.forEach((path, k) => path.classList.toggle("current", k === current));
    at.textContent = describe(every[current].__data__.datum);
  }

  spec.datasets = { rows: chosen() };
  const label = plot.getAttribute("aria-label");
  plot.replaceChildren();
  const { view } = await vegaEmbed(plot, spec, {
    actions: false,
    renderer: "svg",
    ast: true, // no eval, which the page's policy forbids
    logLevel: 1, // errors
    tooltip: { disableDefaultStyle: true },
  });
  plot.tabIndex = 0;
  plot.setAttribute("role", "application");
  plot.setAttribute("aria-label", label);
  view.addEventListener("click", (event, item) => {
    if (item && item.datum && item.datum.text) show(item.datum);
  });
  plot.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (by) step(by);
    else if (event.key === "Enter" && current >= 0) show(points()[current].__data__.datum);
    else if (event.key === "Escape") clear();
    else return;
    event.preventDefault();
  });

  async function change(event) {
    if (!chosen().length) {
      // nothing was measured for these choices together: take others for the rest
      const { column } = event.target.dataset;
      const other = rows.find((row) => row[column] === event.target.value) || rows[0];
      for (const select of selects) if (select.value) select.value = other[select.dataset.column];
    }
    clear();
    await view.data("rows", chosen()).runAsync();
    at.textContent = `${chosen().length} points`;
  }
  for (const select of selects) select.addEventListener("change", change);
  figure.querySelector(".controls").hidden = !selects.length;
  figure.querySelector(".hint").hidden = false;
}

scoreboard();
const show = details();
Promise.all([...document.querySelectorAll("figure.chart")].map(chart)).then(() => {
  document.documentElement.dataset.ready = "";
  show();
});
