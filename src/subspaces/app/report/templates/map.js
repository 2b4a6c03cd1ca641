// The map: a canvas drawn from the coordinates in the data.
(() => {
  const canvas = byId("map-canvas");
  if (!canvas) return;
  const pen = canvas.getContext("2d");
  const tip = byId("map-tip");
  const chips = Array.from(document.querySelectorAll("#legend .chip"));
  const colorOf = new Map(chips.map((chip) => [Number(chip.dataset.cluster), Number(chip.dataset.color)]));
  const hidden = new Set();
  const n = data.id.length;
  const hasPictures = byId("look") !== null;
  const widest = Math.max(...data.x, 1);
  const highest = Math.max(...data.y, 1);
  const order = data.id.map((_, j) => j).sort((i, j) => data.cluster[i] - data.cluster[j] || data.confidence[j] - data.confidence[i]);
  let view = { zoom: 1, x: widest / 2, y: highest / 2 };
  let width = 0;
  let height = 0;
  let chosen = -1;
  let waiting = false;

  const margin = 26;
  const base = () => Math.min((width - 2 * margin) / widest, (height - 2 * margin) / highest);
  // a map is made for its neighbourhoods: it may be half as wide again, to fill the page
  const wider = () => Math.min(1.6, (width - 2 * margin) / (widest * base()));
  const across = (x) => width / 2 + (x - view.x) * base() * wider() * view.zoom;
  const down = (y) => height / 2 - (y - view.y) * base() * view.zoom;
  const isShown = (j) => !hidden.has(data.cluster[j]);
  const radius = () => Math.min(9, Math.max(1.7, Math.min(5, 0.16 * Math.sqrt((width * height) / n))) * Math.sqrt(view.zoom));

  function style(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // Where few points are in sight, their pictures stand in place of dots.
  const most = 110;
  const made = new Map();
  function pictureOf(j) {
    if (!made.has(j)) {
      const source = sourceOf(data.index[j]);
      const image = source ? new Image() : null;
      if (image) {
        image.onload = redraw;
        image.src = source;
      }
      made.set(j, image);
    }
    return made.get(j);
  }

  function inSight() {
    const found = [];
    for (let j = 0; j < n; j += 1) {
      if (!isShown(j)) continue;
      const x = across(data.x[j]);
      const y = down(data.y[j]);
      if (x > -20 && y > -20 && x < width + 20 && y < height + 20) found.push(j);
    }
    return found;
  }

  function dot(j, r, color, rim) {
    const x = across(data.x[j]);
    const y = down(data.y[j]);
    const image = r > 12 ? pictureOf(j) : null;
    pen.fillStyle = color;
    pen.lineWidth = Math.max(1, Math.min(2.5, r / 3));
    pen.strokeStyle = rim;
    if (image && image.complete && image.naturalWidth) {
      const side = (2 * r) / Math.max(image.naturalWidth, image.naturalHeight);
      const [w, h] = [image.naturalWidth * side, image.naturalHeight * side];
      pen.fillRect(x - w / 2 - 3, y - h / 2 - 3, w + 6, h + 6);
      pen.drawImage(image, x - w / 2, y - h / 2, w, h);
      if (rim) pen.strokeRect(x - w / 2 - 3, y - h / 2 - 3, w + 6, h + 6);
      return;
    }
    pen.beginPath();
    pen.arc(x, y, Math.min(r, 8), 0, 2 * Math.PI);
    pen.globalAlpha = 0.85;
    pen.fill();
    pen.globalAlpha = 1;
    if (rim) pen.stroke();
  }

  function draw() {
    waiting = false;
    const ratio = window.devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const ink = style("--ink");
    const paper = style("--card");
    const colors = Array.from({ length: 20 }, (_, c) => style("--c" + c));
    const seen = inSight();
    const r = hasPictures && seen.length <= most ? 19 : radius();
    for (const doubtful of [false, true]) {
      for (const j of seen) {
        if (data.confidence[j] < data.unsure === doubtful) dot(j, r, colors[colorOf.get(data.cluster[j])], doubtful && ink);
      }
    }
    pen.font = "bold " + (chips.length > 40 ? 11 : 14) + "px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    for (const chip of chips) {
      if (hidden.has(Number(chip.dataset.cluster))) continue;
      const x = across(Number(chip.dataset.x));
      const y = down(Number(chip.dataset.y));
      pen.lineWidth = 4;
      pen.strokeStyle = paper;
      pen.strokeText(chip.dataset.cluster, x, y);
      pen.fillStyle = ink;
      pen.fillText(chip.dataset.cluster, x, y);
    }
    if (chosen >= 0 && isShown(chosen)) {
      pen.beginPath();
      pen.arc(across(data.x[chosen]), down(data.y[chosen]), r + 4, 0, 2 * Math.PI);
      pen.lineWidth = 2.5;
      pen.strokeStyle = ink;
      pen.stroke();
    }
  }

  function redraw() {
    if (!waiting) {
      waiting = true;
      requestAnimationFrame(draw);
    }
  }

  function resize() {
    width = canvas.clientWidth;
    height = canvas.clientHeight;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    redraw();
  }

  function nearest(x, y) {
    let best = -1;
    let least = (hasPictures && inSight().length <= most ? 22 : radius() + 7) ** 2;
    for (let j = 0; j < n; j += 1) {
      if (!isShown(j)) continue;
      const square = (across(data.x[j]) - x) ** 2 + (down(data.y[j]) - y) ** 2;
      if (square < least) {
        least = square;
        best = j;
      }
    }
    return best;
  }

  function choose(j) {
    if (j === chosen) return;
    chosen = j;
    tip.hidden = j < 0;
    canvas.classList.toggle("pointing", j >= 0);
    if (j >= 0) {
      const source = sourceOf(data.index[j]);
      const parts = [make("b", fullName(j)), ...facts(j)];
      if (source) {
        const image = make("img");
        image.src = source;
        image.alt = "";
        parts.unshift(image);
      } else {
        const profile = document.querySelector("#p" + data.index[j] + " svg");
        if (profile) parts.unshift(profile.cloneNode(true));
      }
      tip.replaceChildren(...parts);
      const x = across(data.x[j]);
      const y = down(data.y[j]);
      const left = Math.min(Math.max(4, x + 14), Math.max(4, width - tip.offsetWidth - 4));
      const above = y + 16 + tip.offsetHeight > height;
      tip.style.left = left + "px";
      tip.style.top = Math.max(4, above ? y - tip.offsetHeight - 14 : y + 14) + "px";
    }
    redraw();
  }

  function zoomBy(factor, x = width / 2, y = height / 2) {
    const before = view.zoom;
    const zoom = Math.min(60, Math.max(1, before * factor));
    const scale = base();
    view.x += (x - width / 2) * (1 / before - 1 / zoom) / (scale * wider());
    view.y -= (y - height / 2) * (1 / before - 1 / zoom) / scale;
    view.zoom = zoom;
    if (zoom === 1) view = { zoom: 1, x: widest / 2, y: highest / 2 };
    canvas.classList.toggle("zoomed", zoom > 1);
    choose(-1);
    redraw();
  }

  // a picture, with the others of its cluster before and behind it
  function enlarged(j) {
    const alike = order.filter((i) => data.cluster[i] === data.cluster[j]).map((i) => data.index[i]);
    look(data.index[j], alike.filter((i) => sourceOf(i) !== null));
  }

  const pointers = new Map();
  let moved = 0;
  const where = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, where(event));
    moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = where(event);
    const last = pointers.get(event.pointerId);
    if (!last) {
      choose(nearest(x, y));
      return;
    }
    const others = Array.from(pointers).filter(([id]) => id !== event.pointerId);
    if (others.length) {
      const [ox, oy] = others[0][1];
      zoomBy(Math.hypot(x - ox, y - oy) / Math.max(1, Math.hypot(last[0] - ox, last[1] - oy)), (x + ox) / 2, (y + oy) / 2);
    } else if (view.zoom > 1 || event.pointerType === "mouse") {
      const scale = base() * view.zoom;
      view.x -= (x - last[0]) / (scale * wider());
      view.y += (y - last[1]) / scale;
      redraw();
    }
    moved += Math.hypot(x - last[0], y - last[1]);
    if (moved > 5) {
      choose(-1);
      canvas.setPointerCapture(event.pointerId);
    }
    pointers.set(event.pointerId, [x, y]);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, (event) => {
      pointers.delete(event.pointerId);
      if (name === "pointercancel" || moved > 5) return;
      const before = chosen;
      const found = nearest(...where(event));
      choose(found);
      if (found >= 0 && (event.pointerType === "mouse" || before === found)) enlarged(found);
    });
  }
  canvas.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse" && !pointers.size) choose(-1); });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return; // the page scrolls on
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY / 300), ...where(event));
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => zoomBy(2, ...where(event)));
  canvas.addEventListener("keydown", (event) => {
    const seen = order.filter(isShown);
    const at = seen.indexOf(chosen);
    const firsts = seen.filter((j, i) => i === 0 || data.cluster[j] !== data.cluster[seen[i - 1]]);
    const next = firsts.find((j) => chosen < 0 || data.cluster[j] > data.cluster[chosen]);
    const last = firsts.filter((j) => chosen >= 0 && data.cluster[j] < data.cluster[chosen]).pop();
    const steps = {
      ArrowRight: () => choose(seen[Math.min(at + 1, seen.length - 1)]),
      ArrowLeft: () => choose(seen[Math.max(at - 1, 0)]),
      ArrowDown: () => next !== undefined && choose(next),
      ArrowUp: () => last !== undefined && choose(last),
      Enter: () => chosen >= 0 && enlarged(chosen),
      Escape: () => choose(-1),
      "+": () => zoomBy(1.5),
      "=": () => zoomBy(1.5),
      "-": () => zoomBy(1 / 1.5),
      0: () => zoomBy(0),
    };
    if (!steps[event.key] || (!seen.length && event.key.startsWith("Arrow"))) return;
    event.preventDefault();
    steps[event.key]();
  });
  byId("map-in").addEventListener("click", () => zoomBy(1.6));
  byId("map-out").addEventListener("click", () => zoomBy(1 / 1.6));
  byId("map-reset").addEventListener("click", () => zoomBy(0));

  function show(chip, wanted) {
    const cluster = Number(chip.dataset.cluster);
    chip.setAttribute("aria-pressed", String(wanted));
    if (wanted) hidden.delete(cluster);
    else hidden.add(cluster);
  }
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      show(chip, chip.getAttribute("aria-pressed") !== "true");
      choose(-1);
      redraw();
    });
  }
  for (const [name, wanted] of [["legend-all", true], ["legend-none", false]]) {
    byId(name).addEventListener("click", () => {
      for (const chip of chips) show(chip, wanted);
      choose(-1);
      redraw();
    });
  }
  new ResizeObserver(resize).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  resize();
})();
