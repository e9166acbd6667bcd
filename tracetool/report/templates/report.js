"use strict";
// Charts are drawn when they come near the window, the others of open parts when the browser has nothing else to do:
// a page of many flows opens at once, and prints whole.
const waiting = new Set(document.querySelectorAll(".chart"));
function reveal(element) {
  if (!waiting.delete(element)) return null;
  near.unobserve(element);
  return show(element, document.getElementById(element.dataset.spec).textContent);
}
const near = new IntersectionObserver(entries => {
  for (const entry of entries) if (entry.isIntersecting) reveal(entry.target);
}, {rootMargin: "400px"});
waiting.forEach(element => near.observe(element));
// A browser that is never idle must draw them, too.
const whenIdle = work => window.requestIdleCallback ? requestIdleCallback(work, {timeout: 500}) : setTimeout(work, 50);
async function revealNext() {
  const next = [...waiting].find(element => element.offsetParent !== null);
  if (next === undefined) return;
  await reveal(next);
  whenIdle(revealNext);
}
addEventListener("load", () => whenIdle(revealNext));
document.querySelectorAll("details").forEach(element => element.addEventListener("toggle", () => whenIdle(revealNext)));

function valueOf(row, column) {
  const cell = row.cells[column];
  return cell.dataset.order === undefined ? cell.textContent : Number(cell.dataset.order);
}
// Numbers before text (a dash is an unknown number), so that what is unknown stands last in either direction.
function compare(a, b, sign) {
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return sign * (typeof a === "number" ? a - b : a.localeCompare(b, undefined, {numeric: true}));
}
for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const descending = heading.getAttribute("aria-sort") === "descending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", descending ? "ascending" : "descending");
      const sign = descending ? 1 : -1;
      const body = table.tBodies[0];
      const sorted = [...body.rows].sort((a, b) => compare(valueOf(a, column), valueOf(b, column), sign));
      body.append(...sorted);
    });
  });
}

const search = document.getElementById("search");
const rows = [...document.getElementById("flow-table").tBodies[0].rows];
function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every(word => text.includes(word));
    count += !row.hidden;
  }
  document.getElementById("shown").textContent = `${count.toLocaleString("en")} of ${rows.length.toLocaleString("en")}`;
}
search.addEventListener("input", filter);
filter();
