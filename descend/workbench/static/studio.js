// What every page of the studio does: parts that follow events, buttons that send, values under the mouse.
import { answerMouse } from "/static/mouse.js";

const said = document.getElementById("said");
let quiet;

/** Tell something for a while; what is wrong stays longer. */
export function say(text, wrong = false) {
  clearTimeout(quiet);
  said.textContent = text;
  said.className = text ? (wrong ? "on bad" : "on") : "";
  quiet = setTimeout(() => { said.className = ""; }, wrong ? 12000 : 5000);
}

/** The answer of a route, or an error in the server's words. */
export async function send(path, body) {
  const options = body === undefined ? {} :
    { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("the studio does not answer: start it again with descend studio; runs go on without it");
  }
  const text = await answer.text();
  const typed = (answer.headers.get("content-type") || "").includes("json");
  const found = typed ? JSON.parse(text) : text;
  if (!answer.ok) throw new Error(typed ? (found.error?.message ?? found.error) : `${answer.status}`);
  return found;
}

/** Put a part of a page, written by the server, in its place; what was open or marked stays so. */
export function place(root, markup) {
  const open = [...root.querySelectorAll("details")].map(one => one.open);
  const marked = new Set([...root.querySelectorAll("input[type=checkbox]:checked")].map(one => one.value));
  root.innerHTML = markup;
  root.querySelectorAll("details").forEach((one, i) => { if (open[i]) one.open = true; });
  root.querySelectorAll("input[type=checkbox]").forEach(one => { if (marked.has(one.value)) one.checked = true; });
  prepare(root);
}

const latest = new WeakMap();

/** Load a part; where another was asked for meanwhile, that one counts. */
export async function load(root, path, body) {
  const mine = {};
  latest.set(root, mine);
  try {
    const markup = await send(path, body);
    if (latest.get(root) === mine) place(root, markup);
  } catch (error) {
    if (latest.get(root) !== mine) return;
    root.innerHTML = "";
    root.appendChild(Object.assign(document.createElement("p"), { className: "warning", textContent: error.message }));
  }
}

/** A part that is read again whenever something has changed, at most twice a second, and only while it is seen. */
function follow(root) {
  let due = false, busy = false, source;
  const lost = Object.assign(document.createElement("p"), { className: "lost", hidden: true,
    textContent: "The studio does not answer. Runs go on; this page does when the studio is started again." });
  root.before(lost);
  const refresh = async () => {
    if (busy) { due = true; return; }
    busy = true; due = false;
    try {
      const markup = await send(root.dataset.part);
      if (!root.contains(document.activeElement) || document.activeElement.tagName !== "INPUT") place(root, markup);
      lost.hidden = true;
    } catch (error) {
      say(error.message, true);
    }
    setTimeout(() => { busy = false; if (due) refresh(); }, 500);
  };
  const open = () => {
    source = new EventSource(root.dataset.events);
    source.onmessage = event => {
      lost.hidden = true;
      if (event.data === "[DONE]") { source.close(); setTimeout(open, 2000); return; }
      if (!JSON.parse(event.data).first) refresh();
    };
    source.onerror = () => { lost.hidden = false; if (source.readyState === 2) setTimeout(open, 2000); };
  };
  const look = () => {
    if (document.hidden) { source?.close(); source = undefined; } else if (!source) { refresh(); open(); }
  };
  document.addEventListener("visibilitychange", look);
  if (!document.hidden) open();
}

/** Whatever a part of a page needs once it is there. */
export function prepare(root) {
  answerMouse(root);
  for (const one of root.querySelectorAll("[data-part]:not([data-events])")) load(one, one.dataset.part);
  for (const one of root.querySelectorAll("details[data-load]")) {
    one.addEventListener("toggle", () => {
      if (!one.open || one.dataset.loaded) return;
      one.dataset.loaded = "1";
      const body = Object.assign(document.createElement("div"), { innerHTML: "" });
      const waits = one.querySelector(".empty");
      send(one.dataset.load).then(markup => { waits?.remove(); one.append(body); place(body, markup); })
        .catch(error => { delete one.dataset.loaded; one.open = false; say(error.message, true); });
    });
  }
  for (const one of root.querySelectorAll("[data-post]")) {
    one.addEventListener("click", async event => {
      event.preventDefault();
      one.disabled = true;
      try {
        const { post, take, ...body } = one.dataset;
        if (take) body[take] = document.getElementById(take).value;
        const found = await send(post, body);
        if (found.go) location.href = found.go; else say(found.said);
      } catch (error) {
        say(error.message, true);
      }
      one.disabled = false;
    });
  }
  for (const one of root.querySelectorAll("[data-filter]")) one.addEventListener("input", () => filter(one));
  for (const one of root.querySelectorAll("[data-search]")) {
    let later;
    const search = () => load(document.querySelector(one.dataset.search), `${one.dataset.route}?words=${encodeURIComponent(one.value)}`);
    one.addEventListener("input", () => { clearTimeout(later); later = setTimeout(search, 200); });
  }
  for (const one of root.querySelectorAll("[data-submit=change]")) one.addEventListener("change", () => one.submit());
  for (const one of root.querySelectorAll("[data-copy]")) {
    one.addEventListener("click", async () => {
      const text = document.querySelector(one.dataset.copy).textContent;
      try { await navigator.clipboard.writeText(text); say("copied"); } catch { say(text); }
    });
  }
  document.querySelectorAll("[data-filter]").forEach(one => { if (one.value) filter(one); });
}

function filter(input) {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of document.querySelectorAll(input.dataset.filter)) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every(word => text.includes(word));
  }
}

for (const one of document.querySelectorAll("[data-part][data-events]")) follow(one);
prepare(document);
