// A network over training time: the slider chooses the checkpoint, and what is shown follows.
import { load, say } from "/static/studio.js";

const root = document.getElementById("inside"), slider = document.getElementById("step"), at = document.getElementById("at");
const layers = document.getElementById("layers"), own = document.getElementById("own");
const steps = root.dataset.steps.split(" ").map(Number);
let later, image = "";

const step = () => steps[slider.value];
const query = () => new URLSearchParams({ run: root.dataset.run, step: step() });

function show() {
  at.textContent = `step ${step().toLocaleString("en")}`;
  history.replaceState(null, "", `/inside?${query()}`);
  clearTimeout(later);
  later = setTimeout(async () => {
    root.setAttribute("aria-busy", "true");
    await load(root, `/part/inside?${query()}`);
    root.removeAttribute("aria-busy");
    if (layers.open) load(layers.lastElementChild, `/part/layers?${query()}`);
    if (text.value || image) ask();
  }, 150);
}

slider.addEventListener("input", show);
layers.addEventListener("toggle", () => { if (layers.open) load(layers.lastElementChild, `/part/layers?${query()}`); });

const text = Object.assign(document.createElement("textarea"), { rows: 2, placeholder: "A text, for a language model" });
text.setAttribute("aria-label", "own text");
const file = Object.assign(document.createElement("input"), { type: "file", accept: "image/*" });
file.setAttribute("aria-label", "own image");
const go = Object.assign(document.createElement("button"), { type: "button", textContent: "Look", className: "main" });
const out = document.createElement("div");
const row = Object.assign(document.createElement("p"), { className: "actions" });
row.append(file, go);
own.append(text, row, out);

function ask() {
  return load(out, "/part/own", { run: root.dataset.run, step: step(), text: text.value, image });
}

file.addEventListener("change", () => {
  if (!file.files[0]) return;
  if (file.files[0].size > 3e6) { say("this image has more than 3 MB: make it smaller", true); return; }
  const reader = new FileReader();
  reader.onload = () => { image = reader.result; ask(); };
  reader.readAsDataURL(file.files[0]);
});
go.addEventListener("click", ask);
show();
