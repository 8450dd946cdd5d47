// A network over training time: the slider chooses the checkpoint, and what is shown follows.
import { load, say } from "/static/studio.js";

const root = document.getElementById("inside"), slider = document.getElementById("step"), at = document.getElementById("at");
const layers = document.getElementById("layers"), own = document.getElementById("own");
const seen = document.getElementById("seen");
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
    if (seen.firstChild) ask();
  }, 150);
}

slider.addEventListener("input", show);
layers.addEventListener("toggle", () => { if (layers.open) load(layers.lastElementChild, `/part/layers?${query()}`); });

const go = Object.assign(document.createElement("button"), { type: "button", textContent: "Look", className: "main" });
const given = name => [...own.querySelectorAll(`[data-own=${name}]`)];

function ask() {
  const row = Object.fromEntries(given("row").map(one => [one.dataset.column, one.value]));
  return load(seen, "/part/own", { run: root.dataset.run, step: step(), text: given("text")[0]?.value ?? "", image, row });
}

/** The field for what this model takes, once; what it shows follows the slider. */
async function prepareOwn() {
  await load(own, `/part/own?${query()}`);
  if (own.querySelector("[data-own]")) own.append(go);
  for (const file of given("image")) file.addEventListener("change", () => {
    if (!file.files[0]) return;
    if (file.files[0].size > 3e6) { say("this image has more than 3 MB: make it smaller", true); return; }
    const reader = new FileReader();
    reader.onload = () => { image = reader.result; ask(); };
    reader.readAsDataURL(file.files[0]);
  });
}

go.addEventListener("click", ask);
show();
prepareOwn();
