// The playground: the form is the address, the server trains, this page draws.
import { answerMouse } from "/static/mouse.js";
import { say, send } from "/static/studio.js";

const choices = JSON.parse(document.getElementById("choices").textContent);
const $ = name => document.getElementById(name);
const form = $("parts"), surface = $("surface"), pen = surface.getContext("2d");
const LABELS = ["a", "b", "c", "d"];
const state = { data: "moons", points: [], hidden: [8, 8], activation: "tanh", start: "xavier-normal", norm: "none",
  dropout: 0, optimizer: "Adam", lr: 0.03, decay: 0, batch: 32, seed: 0 };
let shown = { step: 0 }, playing = false, busy = false, label = "a";

const make = (tag, attributes = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), attributes);
  node.append(...children);
  return node;
};

// The form

const ABOUT = { data: "data", hidden: "hidden units, a number a layer", activation: "activation", start: "initial weights",
  norm: "norm", dropout: "dropout", optimizer: "optimizer", lr: "learning rate", decay: "weight decay", batch: "batch (0: all)",
  seed: "seed" };

function build() {
  for (const [name, about] of Object.entries(ABOUT)) {
    const input = choices[name]
      ? make("select", { name }, ...choices[name].map(value => make("option", { value, textContent: value })))
      : make("input", { name, inputMode: name === "hidden" ? "text" : "decimal" });
    form.append(make("label", { className: "field" }, make("span", { textContent: about }), input));
  }
  const file = make("input", { type: "file", accept: ".csv" });
  file.addEventListener("change", () => file.files[0] && upload(file.files[0]));
  form.append(make("label", { className: "field" }, make("span", { textContent: "a table of your own (CSV, two inputs)" }), file));
  form.addEventListener("change", event => { if (event.target.name) { read(); reset(); } });
  form.addEventListener("submit", event => event.preventDefault());
}

function read() {
  for (const name of Object.keys(ABOUT)) {
    const value = form.elements[name].value;
    if (name === "hidden") state.hidden = value.split(/[\s,]+/).filter(Boolean).map(Number);
    else state[name] = choices[name] ? value : Number(value);
  }
}

function fill() {
  for (const name of Object.keys(ABOUT)) {
    const input = form.elements[name];
    const value = name === "hidden" ? state.hidden.join(" ") : String(state[name]);
    if (choices[name] && ![...input.options].some(one => one.value === value)) input.append(make("option", { value, textContent: value }));
    input.value = value;
  }
}

async function upload(file) {
  try {
    const answer = await fetch(`/api/upload?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error?.message ?? found.error);
    state.data = found.path;
    fill();
    reset();
  } catch (error) {
    say(error.message, true);
  }
}

// The address

const plain = () => ({ ...state, points: state.data === "drawn" ? state.points : [] });

function remember() {
  const { points, hidden, ...others } = plain();
  const query = new URLSearchParams({ ...others, hidden: hidden.join(" "), step: shown.step });
  if (points.length) query.set("points", points.map(p => `${p.label}${p.x},${p.y}`).join(";"));
  history.replaceState(null, "", `#${query}`);
}

function recall() {
  const query = new URLSearchParams(location.hash.slice(1));
  for (const [name, value] of query) {
    if (name === "hidden") state.hidden = value.split(" ").map(Number);
    else if (name === "points") state.points = value.split(";").map(one => {
      const [x, y] = one.slice(1).split(",").map(Number);
      return { label: one[0], x, y };
    });
    else if (name in state) state[name] = typeof state[name] === "number" ? Number(value) : value;
  }
  return Number(query.get("step") || 0);
}

// Training

async function go(to) {
  if (busy) return;
  busy = true;
  try {
    do {
      shown = await send("/api/playground", { ...plain(), to });
    } while (shown.step < to && !playing);
    draw();
  } catch (error) {
    stop();
    shown = { step: 0 };
    say(error.message, true);
    drawPoints();
  }
  busy = false;
}

async function play() {
  playing = true;
  $("play").textContent = "Pause";
  while (playing) {
    const began = performance.now();
    await go(shown.step + 5);
    if (shown.step >= 20000) stop();
    await new Promise(done => setTimeout(done, Math.max(0, 60 - (performance.now() - began))));
  }
}

function stop() {
  playing = false;
  $("play").textContent = "Play";
}

async function reset() {
  stop();
  while (busy) await new Promise(done => setTimeout(done, 30));
  shown = { step: 0 };
  if (state.data === "drawn" && state.points.length < 10) { drawPoints(); remember(); return; }
  await go(0);
}

// Drawing

const bytes = text => Uint8Array.from(atob(text), one => one.charCodeAt(0));
const tone = k => getComputedStyle(form).getPropertyValue(`--c${k}`).trim().match(/\w\w/g).map(pair => parseInt(pair, 16));

function paint(target, values, cells, colour) {
  const small = make("canvas", { width: cells, height: cells }), ink = small.getContext("2d");
  const data = ink.createImageData(cells, cells);
  values.forEach((value, i) => data.data.set(colour(value, i), 4 * i));
  ink.putImageData(data, 0, 0);
  const pen = target.getContext("2d");
  pen.clearRect(0, 0, target.width, target.height);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(small, 0, 0, target.width, target.height);
}

const place = (box, x, y) => [(x - box[0]) / (box[2] - box[0]) * surface.width, (box[3] - y) / (box[3] - box[1]) * surface.height];

function dot(x, y, k, hollow) {
  pen.beginPath();
  pen.arc(x, y, 4, 0, 2 * Math.PI);
  pen.fillStyle = hollow ? "#fff" : `rgb(${tone(k)})`;
  pen.strokeStyle = hollow ? `rgb(${tone(k)})` : "#fff";
  pen.lineWidth = hollow ? 2 : 1;
  pen.fill();
  pen.stroke();
}

function draw() {
  const tones = shown.labels.map((_, k) => tone(k)), lead = bytes(shown.lead);
  paint(surface, bytes(shown.winner), shown.cells, (k, i) => [...tones[k], 40 + 0.6 * lead[i]]);
  for (const [part, hollow] of [[shown.points, false], [shown.held, true]])
    part.x.forEach(([x, y], i) => dot(...place(shown.box, x, y), part.y[i], hollow));
  const score = ([loss, accuracy]) => `${loss.toFixed(4)} (${(100 * accuracy).toFixed(1)}% right)`;
  $("at").textContent = `step ${shown.step.toLocaleString("en")} · training ${score(shown.train)} · validation ${score(shown.valid)}`;
  $("labels").replaceChildren(...shown.labels.map((name, k) => {
    const mark = make("i");
    mark.style.color = `rgb(${tones[k]})`;
    return make("span", {}, mark, name);
  }), make("span", { textContent: `${shown.parameters} parameters; hollow points are held out` }));
  $("course").innerHTML = shown.step ? shown.chart : '<p class="empty">The loss is drawn from the first step on.</p>';
  answerMouse($("course"));
  const warm = tone(1), cold = tone(0);
  $("neurons").replaceChildren(...shown.layers.map((units, l) => make("div", { className: "neurons" },
    make("small", { textContent: `layer ${l + 1}` }), ...units.map(unit => {
      const one = make("canvas", { width: 60, height: 60 });
      paint(one, bytes(unit), shown.small, v => [...(v > 127.5 ? warm : cold), Math.abs(v - 127.5) * 2]);
      return one;
    }))));
  remember();
}

/** The points that were drawn, before there are enough of them. */
function drawPoints() {
  pen.clearRect(0, 0, surface.width, surface.height);
  for (const { x, y, label: name } of state.points) dot(...place([-3, -3, 3, 3], x, y), LABELS.indexOf(name), false);
  $("at").textContent = state.data === "drawn" ? `${state.points.length} points; 10 of two colours are enough` : "step 0";
  $("labels").replaceChildren();
}

function pens() {
  $("pens").replaceChildren("draw points of class ", ...LABELS.map((name, k) => {
    const one = make("button", { type: "button", textContent: name });
    one.style.borderColor = one.style.outlineColor = `rgb(${tone(k)})`;
    one.setAttribute("aria-pressed", String(name === label));
    one.addEventListener("click", () => { label = name; pens(); });
    return one;
  }), make("button", { type: "button", textContent: "Clear", onclick: () => { state.points = []; state.data = "drawn"; fill(); reset(); } }));
}

surface.addEventListener("pointerdown", event => {
  const box = surface.getBoundingClientRect();
  const u = (event.clientX - box.left) / box.width, v = (event.clientY - box.top) / box.height;
  if (state.data !== "drawn") { state.data = "drawn"; state.points = []; fill(); }
  const round = value => Number(value.toFixed(3));
  for (let i = 0; i < 3; i++) {
    const spread = () => (Math.random() - 0.5) * 0.24;
    state.points.push({ label, x: round(-3 + 6 * u + spread()), y: round(3 - 6 * v + spread()) });
  }
  stop();
  shown = { step: 0 };
  drawPoints();
  remember();
});

$("play").addEventListener("click", () => { if (playing) stop(); else play(); });
$("one").addEventListener("click", () => { stop(); go(shown.step + 1); });
$("ten").addEventListener("click", () => { stop(); go(shown.step + 10); });
$("reset").addEventListener("click", reset);
$("write").addEventListener("click", async () => {
  try {
    const found = await send("/api/playground/python", { ...plain(), to: Math.max(1, shown.step) });
    $("python").hidden = $("copies").hidden = false;
    $("python").textContent = found.python;
    $("command").textContent = found.command;
  } catch (error) {
    say(error.message, true);
  }
});

build();
const asked = recall();
fill();
pens();
go(asked);
