"use strict";

// The page of `labelkin serve`. All text from the server is set as text, never as HTML.

const $ = (id) => document.getElementById(id);
const RULES = { argmax: "most probable class", crm: "least expected cost", fallback: "most specific node that is probable enough" };
const REMARKS = {
  ancestor: "This is more general than a class, because no class below it is probable enough.",
  action: "This is an action, not a class: every class is expected to cost more.",
};
const token = new URLSearchParams(location.hash.slice(1)).get("token");
let asked = 0;

function made(tag, text, ...classes) {
  const element = document.createElement(tag);
  element.textContent = text ?? "";
  element.classList.add(...classes);
  return element;
}

function percent(probability) {
  return probability === null ? "" : `${(100 * probability).toFixed(1)} %`;
}

function complain(sentence) {
  $("problem").textContent = sentence;
  $("problem").hidden = !sentence;
}

async function ask(path, options = {}) {
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch {
    throw new Error("The server does not answer; start it again with labelkin serve.");
  }
  const found = await response.json().catch(() => ({ error: `The server answered ${response.status}.` }));
  if (!response.ok) throw new Error(found.error);
  return found;
}

async function decide(options) {
  const mine = ++asked;
  complain("");
  $("busy").textContent = "Deciding …";
  for (const button of document.querySelectorAll("form button")) button.disabled = true;
  try {
    const found = await ask("/api/predict", { method: "POST", ...options });
    if (mine === asked) show(found);
  } catch (error) {
    if (mine !== asked) return;
    $("result").hidden = true;
    complain(error.message);
  } finally {
    if (mine === asked) {
      $("busy").textContent = "";
      for (const button of document.querySelectorAll("form button")) button.disabled = false;
    }
  }
}

function show(found) {
  const { answer } = found;
  const open = answer.kind === "none";
  $("rule").textContent = `By the rule “${RULES[answer.rule]}”`;
  $("answer").textContent = open ? "No answer" : answer.name;
  const steps = (answer.path ?? []).slice(1);
  $("path").replaceChildren();
  steps.forEach((step, at) => {
    if (at) $("path").append(" › ");
    $("path").append(made("b", step.name), ` ${percent(step.probability)}`);
  });
  if (!steps.length) $("path").textContent = open ? "No branch of the tree is probable enough." : answer.why ?? percent(answer.probability);
  $("remark").textContent = [REMARKS[answer.kind], found.remark].filter(Boolean).join(" ");
  $("remark").hidden = !$("remark").textContent;
  $("rules").replaceChildren(...Object.values(found.rules).map((rule) => {
    const row = document.createElement("tr");
    const head = made("th", RULES[rule.rule]);
    head.scope = "row";
    row.append(head, made("td", rule.kind === "none" ? "no answer" : rule.name), made("td", percent(rule.probability), "number"));
    return row;
  }));
  bars($("best"), found.best, () => false);
  $("best-panel").hidden = false;
  const onPath = new Set(steps.map((step) => step.name));
  bars($("tree"), found.tree ?? [], (node) => onPath.has(node.name));
  $("tree-panel").hidden = !found.tree;
  $("result").hidden = false;
}

function bars(list, entries, isChosen) {
  list.replaceChildren(...entries.map((entry) => {
    const item = document.createElement("li");
    item.append(made("span", entry.name), made("span", percent(entry.probability), "number"));
    if (entry.depth) item.classList.add(`depth-${Math.min(entry.depth, 6)}`);
    if (isChosen(entry)) item.classList.add("chosen");
    if (entry.probability !== null) {
      const meter = document.createElement("meter");
      meter.value = entry.probability;
      meter.setAttribute("aria-hidden", "true");
      item.append(meter);
    }
    return item;
  }));
}

function sendPhoto(file) {
  if (!file) return;
  const body = new FormData();
  body.append("photo", file);
  if ($("preview").src) URL.revokeObjectURL($("preview").src);
  $("preview").src = URL.createObjectURL(file);
  $("preview").hidden = false;
  decide({ body });
}

function sendJson(fields) {
  decide({ body: JSON.stringify(fields), headers: { "Content-Type": "application/json" } });
}

function listen() {
  $("file").addEventListener("change", () => sendPhoto($("file").files[0]));
  $("preview").addEventListener("error", () => { $("preview").hidden = true; });
  for (const kind of ["dragenter", "dragover"]) {
    document.addEventListener(kind, (event) => { event.preventDefault(); $("drop").classList.add("over"); });
  }
  for (const kind of ["dragleave", "drop"]) {
    document.addEventListener(kind, (event) => { event.preventDefault(); $("drop").classList.remove("over"); });
  }
  document.addEventListener("drop", (event) => { if (!$("photo").hidden) sendPhoto(event.dataTransfer.files[0]); });
  document.addEventListener("paste", (event) => {
    const file = [...event.clipboardData.files].find((entry) => entry.type.startsWith("image/"));
    if (file && !$("photo").hidden) sendPhoto(file);
  });
  $("photo").addEventListener("submit", (event) => event.preventDefault());
  $("text").addEventListener("submit", (event) => { event.preventDefault(); sendJson({ text: $("words").value }); });
  $("features").addEventListener("submit", (event) => { event.preventDefault(); sendJson({ row: $("row").value }); });
  for (const area of document.querySelectorAll("textarea")) {
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) area.form.requestSubmit();
    });
  }
}

async function start() {
  listen();
  try {
    const model = await ask("/api/model");
    document.title = `${model.run} · labelkin`;
    $("about").textContent = `${model.run} · ${model.objective} · ${model.classes} classes`
      + (model.coverage === null ? "" : ` · right, or no answer, at least ${+(100 * model.coverage).toFixed(2)} % of the time`);
    if (model.kind === "features") {
      $("columns").textContent = model.columns
        ? `Values in this order, separated by commas or tabs, or with a line of column names above: ${model.columns.join(", ")}`
        : `${model.values} numbers, separated by commas, tabs or spaces`;
    }
    $(model.kind).hidden = false;
    ($(model.kind).querySelector("input, textarea")).focus();
  } catch (error) {
    complain(error.message);
  }
}

start();
