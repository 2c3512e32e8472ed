"use strict";
(() => {
  const root = document.documentElement;
  const shared = JSON.parse(document.getElementById("shared").textContent);
  const subjects = [...document.querySelectorAll(".subject-data")];
  const place = document.getElementById("subject");
  const select = document.getElementById("subject-choice"); // missing if there is only one subject
  const CONFIG = { displayModeBar: false, doubleClick: "reset", responsive: false };
  const MOST_CURVES = 7; // number of curves shown at first
  const MOST_HEIGHT = 560;
  const LEAST_TICK = 8.5; // pixels per class label
  let current = null; // data of the current subject
  let printing = false;

  // Light and dark

  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => !printing && (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);

  function recolored(node, isColor = false) {
    if (Array.isArray(node)) return node.map((part) => recolored(part, isColor));
    if (node && typeof node === "object") {
      return Object.fromEntries(Object.entries(node).map(([key, part]) => [key, recolored(part, isColor || key.includes("color"))]));
    }
    if (isColor && isDark() && typeof node === "string" && shared.dark[node.slice(0, 7)]) {
      return shared.dark[node.slice(0, 7)] + node.slice(7);
    }
    return node;
  }

  const toggle = document.querySelector(".theme");

  function showTheme() {
    toggle.textContent = isDark() ? "Light" : "Dark";
    toggle.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colors`);
    redrawAll();
  }

  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("labelkin-theme", root.dataset.theme); } catch { /* local files may have no storage */ }
    showTheme();
  });
  prefersDark.addEventListener("change", showTheme);
  try {
    const kept = localStorage.getItem("labelkin-theme");
    if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  } catch { /* local files may have no storage */ }

  // Figures: drawn when they are about to become visible

  const source = (figure) => (place && place.contains(figure) ? current : shared);
  const drawn = () => [...document.querySelectorAll("figure[data-drawn]")];
  const plotOf = (figure) => figure.querySelector(".plot");

  function specOf(figure) {
    const views = source(figure).figures[figure.dataset.figure];
    return views[figure.dataset.view ?? Object.keys(views)[0]];
  }

  function draw(figure) {
    const spec = specOf(figure);
    const meta = spec.layout.meta || {};
    const width = Math.max(plotOf(figure).parentElement.clientWidth, meta.least_width || 0);
    plotOf(figure).style.width = `${width}px`;
    const layout = recolored(spec.layout);
    layout.template = recolored(shared.template);
    layout.width = width;
    layout.dragmode = meta.square ? "zoom" : false;
    layout.legend = { ...layout.legend, itemclick: false, itemdoubleclick: false };
    if (meta.square) layout.height = Math.max(300, Math.min(spec.layout.height, width));
    else if (figure.closest(".front")) layout.height = Math.max(spec.layout.height, Math.min(room(figure), MOST_HEIGHT));
    if (figure.dataset.figure === "curves") layout.showlegend = false;
    if (figure.dataset.figure === "projection" && width < 640) layout.showlegend = false;
    if (width < 480) layout.margin = { ...layout.margin, l: 40, r: 8 };
    const data = recolored(spec.data);
    for (const trace of data) if (hidden.has(trace.legendgroup)) trace.visible = false;
    if (meta.square) fitLabels(layout, width, layout.height, spec.layout.xaxis.tickvals.length);
    figure.dataset.drawn = "";
    const done = window.Plotly.react(plotOf(figure), data, layout, CONFIG);
    if (meta.square && !figure.dataset.watched) {
      figure.dataset.watched = "";
      plotOf(figure).on("plotly_relayout", (change) => refit(figure, change));
    }
    return done;
  }

  // The height left for the figure in a card that is as high as its neighbor.
  function room(figure) {
    const style = getComputedStyle(figure);
    const inside = figure.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
    const others = [...figure.children].filter((child) => !child.contains(plotOf(figure)));
    return inside - others.reduce((sum, child) => sum + child.offsetHeight + parseFloat(getComputedStyle(child).marginBottom), 0) - 8;
  }

  // Without labels, plotly moves the title of the axis up by some 25 pixels, into the figure.
  const standoff = (labeled) => (labeled ? 12 : 40);

  // Show class labels only if they fit; hovering shows the name of a class in any case.
  function fitLabels(layout, width, height, classes) {
    layout.xaxis.showticklabels = (width - 150) / classes >= LEAST_TICK;
    layout.xaxis.title = { ...layout.xaxis.title, standoff: standoff(layout.xaxis.showticklabels) };
    layout.yaxis.showticklabels = (height - 110) / classes >= LEAST_TICK;
  }

  function refit(figure, change) {
    if ("xaxis.showticklabels" in change) return;
    const full = plotOf(figure)._fullLayout;
    const roomy = (axis) => axis._length / Math.abs(axis.range[1] - axis.range[0]) >= LEAST_TICK;
    window.Plotly.relayout(plotOf(figure), {
      "xaxis.showticklabels": roomy(full.xaxis),
      "xaxis.title.standoff": standoff(roomy(full.xaxis)),
      "yaxis.showticklabels": roomy(full.yaxis),
    });
  }

  function zoom(figure, factor) {
    const size = specOf(figure).layout.xaxis.tickvals.length;
    const full = plotOf(figure)._fullLayout;
    const change = {};
    for (const name of ["xaxis", "yaxis"]) {
      const [from, to] = full[name].range;
      const middle = (from + to) / 2;
      const half = Math.min(size, Math.abs(to - from) * (factor || size)) / 2;
      const center = Math.min(Math.max(middle, half - 0.5), size - 0.5 - half);
      change[`${name}.range`] = name === "xaxis" ? [center - half, center + half] : [center + half, center - half];
    }
    window.Plotly.relayout(plotOf(figure), change);
  }

  function redrawAll() { drawn().forEach(draw); }

  // Everything but the figures works before plotly, the last and largest script, is loaded.
  const waiting = new Set();
  const whenNear = (figure) => (window.Plotly ? draw(figure) : waiting.add(figure));
  document.addEventListener("DOMContentLoaded", () => {
    for (const figure of waiting) if (figure.isConnected) draw(figure);
    waiting.clear();
    root.dataset.drawing = "";
    performance.mark("figures");
  });

  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        watcher.unobserve(entry.target);
        whenNear(entry.target);
      }
    }
  }, { rootMargin: "300px" });

  let resizing = 0;
  let lastWidth = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === lastWidth) return;
    lastWidth = window.innerWidth;
    clearTimeout(resizing);
    resizing = setTimeout(redrawAll, 120);
  });

  function begin(within) {
    for (const figure of within.querySelectorAll("figure[data-figure]")) {
      if (!source(figure).figures[figure.dataset.figure]) continue;
      watcher.observe(figure);
      for (const input of figure.querySelectorAll(".views input")) {
        input.addEventListener("change", () => { figure.dataset.view = input.value; draw(figure); });
      }
      for (const button of figure.querySelectorAll("[data-zoom]")) {
        button.addEventListener("click", () => zoom(figure, Number(button.dataset.zoom)));
      }
      const behind = figure.querySelector(".behind");
      if (behind) behind.addEventListener("toggle", () => fill(figure, behind), { once: true });
    }
  }

  // The table of a figure's numbers, built when it is opened

  function cell(tag, value) {
    const element = document.createElement(tag);
    const text = document.createElement("bdi");
    text.textContent = value === null ? "–" : String(value);
    element.append(text);
    if (typeof value === "number") element.className = "number";
    return element;
  }

  function fill(figure, behind) {
    const { columns, rows } = source(figure).tables[figure.dataset.figure];
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    columns.forEach((column, i) => {
      const element = Object.assign(cell("th", column), { scope: "col" });
      if (rows.length && typeof rows[0][i] === "number") element.className = "number";
      head.append(element);
    });
    const body = table.createTBody();
    for (const [first, ...rest] of rows) {
      const line = body.insertRow();
      line.append(Object.assign(cell("th", first), { scope: "row" }), ...rest.map((value) => cell("td", value)));
    }
    behind.querySelector(".scroll").append(table);
  }

  // Learning curves: a checkbox for each objective

  const hidden = new Set();

  function chips() {
    const box = document.querySelector("figure[data-figure='curves'] .chips");
    if (!box || !shared.figures.curves) return;
    const figure = box.closest("figure");
    const lines = Object.values(shared.figures.curves)[0].data.filter((trace) => trace.mode === "lines" && trace.line.width);
    const last = (trace) => trace.y[trace.y.length - 1];
    const ranked = [...lines].sort((a, b) => last(b) - last(a));
    const reference = lines.find((trace) => trace.line.width > 2);
    for (const trace of ranked.slice(MOST_CURVES)) if (trace !== reference) hidden.add(trace.legendgroup);
    const boxes = lines.map((trace) => {
      const label = document.createElement("label");
      const input = Object.assign(document.createElement("input"), { type: "checkbox", checked: !hidden.has(trace.legendgroup) });
      const name = document.createElement("bdi");
      name.textContent = trace.legendgroup;
      input.addEventListener("change", () => {
        hidden[input.checked ? "delete" : "add"](trace.legendgroup);
        draw(figure);
      });
      label.append(input, swatch(trace), name);
      box.append(label);
      return [input, trace.legendgroup];
    });
    for (const [text, checked] of [["All", true], ["None", false]]) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
      button.addEventListener("click", () => {
        for (const [input, group] of boxes) {
          input.checked = checked;
          hidden[checked ? "delete" : "add"](group);
        }
        draw(figure);
      });
      box.append(button);
    }
  }

  const DASHES = { dash: "5 3", dot: "1.5 3", dashdot: "5 3 1.5 3" };

  function swatch(trace) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    for (const [name, value] of Object.entries({ width: 22, height: 8, "aria-hidden": "true" })) svg.setAttribute(name, value);
    for (const [name, value] of Object.entries({ x1: 1, x2: 21, y1: 4, y2: 4, "stroke-width": 3 })) line.setAttribute(name, value);
    line.setAttribute("stroke-dasharray", DASHES[trace.line.dash] || "none");
    const light = trace.line.color;
    line.style.stroke = `var(--series, ${light})`;
    svg.dataset.color = light;
    svg.append(line);
    return svg;
  }

  function colorSwatches() {
    for (const svg of document.querySelectorAll(".chips svg")) svg.style.setProperty("--series", recolored({ color: svg.dataset.color }).color);
  }

  // The leaderboard

  function sortable() {
    const table = document.getElementById("leaderboard");
    if (!table) return;
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => {
        const first = head.querySelector("button").dataset.more === "true" ? "descending" : "ascending";
        const other = first === "descending" ? "ascending" : "descending";
        const order = head.getAttribute("aria-sort") === first ? other : first;
        for (const each of heads) each.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const value = (row) => row.cells[column].dataset.value;
        const compare = (a, b) => {
          if (value(a) === undefined || value(b) === undefined) return (value(a) === undefined) - (value(b) === undefined);
          return sign * (column === 0 ? value(a).localeCompare(value(b)) : Number(value(a)) - Number(value(b)));
        };
        table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
      });
    });
    for (const button of table.querySelectorAll(".look")) {
      button.addEventListener("click", () => {
        choose(Number(button.dataset.subject));
        document.getElementById("look").scrollIntoView();
        select?.focus({ preventScroll: true });
      });
    }
  }

  // Details of one objective

  function choose(index) {
    for (const figure of place.querySelectorAll("figure[data-drawn]")) window.Plotly.purge(plotOf(figure));
    current = JSON.parse(subjects[index].textContent);
    place.innerHTML = current.html;
    if (select) select.value = String(index);
    begin(place);
  }

  // Print everything, in light colors

  window.addEventListener("beforeprint", () => {
    printing = true;
    for (const fold of document.querySelectorAll("#made details")) fold.open = true;
    for (const figure of document.querySelectorAll("figure[data-figure]")) {
      if (source(figure).figures[figure.dataset.figure]) draw(figure);
    }
    colorSwatches();
  });
  window.addEventListener("afterprint", () => { printing = false; redrawAll(); colorSwatches(); });

  chips();
  sortable();
  begin(document.querySelector("main"));
  if (subjects.length) {
    select?.addEventListener("change", () => choose(Number(select.value)));
    choose(Number(document.getElementById("look").dataset.chosen));
  }
  showTheme();
  colorSwatches();
  toggle.addEventListener("click", colorSwatches);
  prefersDark.addEventListener("change", colorSwatches);
  root.dataset.ready = "";
  performance.mark("controls");
})();
