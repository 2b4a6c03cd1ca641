"use strict";
(() => {
  // Everything from the data reaches the page as text (textContent), never as markup.
  const data = JSON.parse(document.getElementById("data").textContent);
  const columns = Array.from(document.querySelectorAll("#table thead button"), (button) => button.dataset.column);
  const body = document.querySelector("#table tbody");
  const words = document.getElementById("words");
  const which = document.getElementById("which");
  const odd = document.getElementById("odd");
  const rowsOnPage = 25;
  const lower = data.name.map((name) => name.toLowerCase());
  const numeric = new Set(["cluster", "confidence", "second", "margin", "flag"]);
  const names = new Intl.Collator(undefined, { numeric: true });
  let order = data.name.map((_, i) => i);
  let shown = order;
  let page = 0;

  function cell(row, column, i) {
    const td = row.insertCell();
    const value = data[column][i];
    if (column === "cluster") {
      const link = document.createElement("a");
      link.href = "#cluster-" + value;
      link.textContent = value;
      td.append(link);
    } else if (column === "flag") {
      td.textContent = value ? "yes" : "";
    } else if (column === "confidence" || column === "margin") {
      td.textContent = value.toFixed(3);
    } else {
      td.textContent = value === null ? "" : value;
    }
    if (numeric.has(column) && column !== "flag") td.className = "right";
  }

  function draw() {
    const last = Math.max(0, Math.ceil(shown.length / rowsOnPage) - 1);
    page = Math.min(page, last);
    body.replaceChildren();
    for (const i of shown.slice(page * rowsOnPage, (page + 1) * rowsOnPage)) {
      const row = body.insertRow();
      if (data.flag[i]) row.className = "flagged";
      for (const column of columns) cell(row, column, i);
    }
    document.getElementById("count").textContent = shown.length.toLocaleString() + " of " + order.length.toLocaleString();
    document.getElementById("place").textContent = "page " + (page + 1) + " of " + (last + 1);
    document.getElementById("back").disabled = page === 0;
    document.getElementById("next").disabled = page === last;
  }

  function filter() {
    const wanted = words.value.trim().toLowerCase();
    const cluster = which.value === "" ? null : Number(which.value);
    shown = order.filter(
      (i) =>
        (cluster === null || data.cluster[i] === cluster) &&
        (!odd.checked || data.flag[i]) &&
        (wanted === "" || lower[i].includes(wanted))
    );
    page = 0;
    draw();
  }

  function sort(button) {
    const column = button.dataset.column;
    const head = button.parentElement;
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of document.querySelectorAll("#table th")) other.setAttribute("aria-sort", "none");
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

  function open() {
    const card = location.hash.startsWith("#cluster-") ? document.getElementById(location.hash.slice(1)) : null;
    if (card) {
      card.open = true;
      card.scrollIntoView();
    }
  }

  for (const button of document.querySelectorAll("#table thead button")) {
    button.addEventListener("click", () => sort(button));
  }
  words.addEventListener("input", filter);
  which.addEventListener("change", filter);
  odd.addEventListener("change", filter);
  document.getElementById("filter").addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("back").addEventListener("click", () => { page -= 1; draw(); });
  document.getElementById("next").addEventListener("click", () => { page += 1; draw(); });
  window.addEventListener("hashchange", open);
  draw();
  open();
})();
