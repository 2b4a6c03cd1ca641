"use strict";
// Everything from the data reaches the page as text (textContent), never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (name) => document.getElementById(name);
const placeOf = new Map(data.index.map((i, j) => [i, j]));
const fullName = (j) => (data.named_by === "id" ? data.id[j] : data.named_by + " " + data.id[j]);

function make(tag, text, name) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
}

// never rounded up: what lies below a half is not shown as one
const twoDigits = (share) => (Math.floor(100 * share + 1e-9) / 100).toFixed(2);

function isAway(j) {
  return data.margin[j] < 0 && data.second_cluster[j] !== null;
}

function remark(j) {
  const said = [];
  if (isAway(j)) said.push("another cluster suits better");
  if (data.fits_nowhere[j]) said.push("fits nowhere");
  return said.join("; ");
}

// Each picture is on the page once, among the members of its cluster; a few stand there small as well.
function sourceOf(i) {
  const own = document.querySelector("#p" + i + " img") || document.querySelector('[data-i="' + i + '"] img');
  return own ? own.src : null;
}

const table = (() => {
  const columns = Array.from(document.querySelectorAll("#table thead [data-column]"), (head) => head.dataset.column);
  const body = document.querySelector("#table tbody");
  const rowsOnPage = 25;
  const lower = data.id.map((name) => name.toLowerCase());
  const numeric = new Set(["cluster", "confidence", "second_cluster", "margin", "fits_nowhere"]);
  const names = new Intl.Collator(undefined, { numeric: true });
  const kinds = {
    "": () => true,
    doubtful: (j) => data.confidence[j] < data.unsure,
    away: isAway,
    nowhere: (j) => data.fits_nowhere[j] === 1,
  };
  let order = data.id.map((_, j) => j);
  let shown = order;
  let page = 0;

  function cell(row, column, j) {
    const td = row.insertCell();
    if (column === "image") {
      const source = sourceOf(data.index[j]);
      if (source) td.append(lookButton(data.index[j], source));
      return;
    }
    const value = data[column][j];
    if (column === "cluster" || (column === "second_cluster" && value !== null)) {
      const link = make("a", value);
      link.href = "#cluster-" + value;
      td.append(link);
    } else if (column === "fits_nowhere") {
      td.textContent = value ? "yes" : "";
    } else if (column === "confidence" || column === "margin") {
      td.textContent = column === "margin" ? value.toFixed(3) : twoDigits(value);
      if (column === "margin" && isAway(j)) td.append(make("span", " ⚑", "mark"));
      if (column === "margin" && isAway(j)) td.title = "another cluster suits better";
    } else {
      td.textContent = value === null ? "" : value;
      if (column === "id") td.className = "id";
    }
    if (numeric.has(column) && column !== "fits_nowhere") td.className = "right";
  }

  function lookButton(i, source) {
    const button = make("button", undefined, "look");
    const image = make("img");
    button.type = "button";
    button.dataset.i = i;
    image.src = source;
    image.alt = "Enlarge " + fullName(placeOf.get(i));
    button.append(image);
    return button;
  }

  function draw() {
    const last = Math.max(0, Math.ceil(shown.length / rowsOnPage) - 1);
    page = Math.min(page, last);
    body.replaceChildren();
    for (const j of shown.slice(page * rowsOnPage, (page + 1) * rowsOnPage)) {
      const row = body.insertRow();
      if (remark(j)) row.className = "flagged";
      for (const column of columns) cell(row, column, j);
    }
    byId("count").textContent = shown.length.toLocaleString("en") + " of " + order.length.toLocaleString("en") + " shown";
    byId("place").textContent = "page " + (page + 1) + " of " + (last + 1);
    byId("back").disabled = page === 0;
    byId("next").disabled = page === last;
  }

  function filter() {
    const wanted = byId("words").value.trim().toLowerCase();
    const cluster = byId("which").value === "" ? null : Number(byId("which").value);
    const isKind = kinds[byId("only").value];
    shown = order.filter(
      (j) =>
        (cluster === null || data.cluster[j] === cluster) && isKind(j) && (wanted === "" || lower[j].includes(wanted))
    );
    page = 0;
    draw();
  }

  function sort(button, down) {
    const column = button.dataset.column;
    const head = button.parentElement;
    for (const other of document.querySelectorAll("#table th[aria-sort]")) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const values = data[column];
    const sign = down ? -1 : 1;
    order.sort((i, j) => {
      const a = values[i];
      const b = values[j];
      if (a === null || b === null) return (a === null) - (b === null);
      const step = numeric.has(column) ? a - b : names.compare(a, b);
      return sign * step || i - j;
    });
    filter();
  }

  for (const button of document.querySelectorAll("#table thead button")) {
    button.addEventListener("click", () => sort(button, button.parentElement.getAttribute("aria-sort") === "ascending"));
  }
  byId("words").addEventListener("input", filter);
  byId("which").addEventListener("change", filter);
  byId("only").addEventListener("change", filter);
  byId("filter").addEventListener("submit", (event) => event.preventDefault());
  byId("back").addEventListener("click", () => { page -= 1; draw(); });
  byId("next").addEventListener("click", () => { page += 1; draw(); });
  for (const link of document.querySelectorAll("a[data-only]")) {
    link.addEventListener("click", () => {
      byId("words").value = "";
      byId("which").value = "";
      byId("only").value = link.dataset.only;
      sort(document.querySelector("#table button[data-column=confidence]"), false);
    });
  }
  draw();
})();

// One picture, large; arrow keys go on to its neighbours.
const look = (() => {
  const dialog = byId("look");
  if (!dialog) return () => {};
  let list = [];
  let at = 0;

  function fill() {
    const i = list[at];
    const j = placeOf.get(i);
    const image = byId("look-image");
    image.src = sourceOf(i);
    image.onload = () => image.classList.toggle("coarse", image.naturalWidth < 100);
    const own = document.querySelector("#p" + i);
    const name = j === undefined ? own.querySelector(".name").textContent : fullName(j);
    image.alt = name;
    byId("look-name").textContent = name;
    byId("look-facts").replaceChildren(...(j === undefined ? [] : facts(j)));
    byId("look-back").disabled = at === 0;
    byId("look-next").disabled = at === list.length - 1;
  }

  function step(by) {
    if (at + by >= 0 && at + by < list.length) {
      at += by;
      fill();
    }
  }

  byId("look-back").addEventListener("click", () => step(-1));
  byId("look-next").addEventListener("click", () => step(1));
  byId("look-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") step(-1);
    else if (event.key === "ArrowRight") step(1);
    else return;
    event.preventDefault();
  });
  return (i, neighbours) => {
    list = neighbours && neighbours.includes(i) ? neighbours : [i];
    at = list.indexOf(i);
    if (!sourceOf(i)) return;
    fill();
    dialog.showModal();
  };
})();

function facts(j) {
  const second = data.second_cluster[j];
  const lines = [["cluster", data.cluster[j]], ["confidence", twoDigits(data.confidence[j])]];
  if (second !== null) lines.push(["second cluster", second]);
  if (data.class) lines.push(["class", data.class[j]]);
  const made = lines.map(([name, value]) => {
    const part = make("span");
    part.append(name + " ", make("b", value));
    return part;
  });
  if (remark(j)) made.push(make("span", remark(j), "mark"));
  return made;
}

const indexOf = (element) => Number(element.dataset.i === undefined ? element.id.slice(1) : element.dataset.i);
function enlarge(event) {
  const item = event.target.closest(".look[data-i], .members.pictures > li");
  if (!item || (event.type === "keydown" && (event.key !== "Enter" || item.tagName === "BUTTON"))) return;
  event.preventDefault(); // or Enter would press the first button of the dialog as well
  const around = item.closest(".members, .thumbs, #doubtful, #table tbody");
  const items = Array.from(around ? around.querySelectorAll(".look[data-i], :scope > li[id]") : [item], indexOf);
  look(indexOf(item), items);
}
document.addEventListener("click", enlarge);
document.addEventListener("keydown", enlarge);
for (const box of document.querySelectorAll(".card details")) {
  box.addEventListener("toggle", () => {
    for (const item of box.querySelectorAll(".members.pictures > li")) {
      item.tabIndex = 0;
      item.setAttribute("role", "button");
    }
  });
}

for (const block of document.querySelectorAll(".copied")) {
  const button = make("button", "Copy", "copy");
  button.type = "button";
  button.addEventListener("click", async () => {
    const text = block.querySelector("code").textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const range = document.createRange();
      range.selectNodeContents(block.querySelector("code"));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  block.append(button);
}

function open() {
  const target = location.hash.length > 1 ? byId(decodeURIComponent(location.hash.slice(1))) : null;
  if (!target) return;
  const box = target.matches("details") ? target : target.querySelector(":scope > details:not(.inline)");
  if (box && (target.matches("details") || target.classList.contains("card"))) box.open = true;
  for (let outer = target.parentElement; outer; outer = outer.parentElement) {
    if (outer.matches("details")) outer.open = true;
  }
  target.scrollIntoView();
}
window.addEventListener("hashchange", open);
open();
