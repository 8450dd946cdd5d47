// A trained model in use: a form by what it takes, an answer by what it gives.
import { place, say, send } from "/static/studio.js";

const root = document.getElementById("use"), chosen = document.getElementById("checkpoint");
let model;

const make = (tag, attributes = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), attributes);
  node.append(...children);
  return node;
};
const card = (title, ...body) => make("section", { className: "card" }, make("h2", { textContent: title }), ...body);
const field = (title, input) => make("label", { className: "field" }, make("span", { textContent: title }), input);
const number = (value, least, most, step = 1) =>
  make("input", { type: "number", value, min: least, max: most, step, inputMode: "decimal" });
const percent = share => `${(100 * share).toFixed(1)}%`;

async function open() {
  root.replaceChildren(make("p", { className: "empty", textContent: "The model is opened …" }));
  try {
    model = await send("/api/open", { run: root.dataset.run, checkpoint: chosen.value });
  } catch (error) {
    root.replaceChildren(make("p", { className: "warning", textContent: error.message }));
    return;
  }
  const pages = [];
  if (model.offers.includes("chat")) pages.push(chat());
  if (model.offers.includes("completions")) pages.push(write());
  if (model.offers.includes("predict")) pages.push(predict());
  if (model.offers.includes("embeddings")) pages.push(compare());
  root.replaceChildren(...pages);
}

const ask = (route, body) => send(`/model/${model.key}/v1/${route}`, { model: model.model, ...body });

/** A button that works once at a time and tells what went wrong. */
function button(text, work) {
  const one = make("button", { type: "button", className: "main", textContent: text });
  one.addEventListener("click", async () => {
    one.disabled = true;
    try { await work(); } catch (error) { say(error.message, true); }
    one.disabled = false;
  });
  return one;
}

// Texts

/** The pieces of an answer that is streamed. */
async function* stream(route, body, signal) {
  const answer = await fetch(`/model/${model.key}/v1/${route}`, { method: "POST", signal,
    headers: { "Content-Type": "application/json" }, body: JSON.stringify({ model: model.model, stream: true, ...body }) });
  if (!answer.ok) throw new Error((await answer.json()).error.message);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    held += value;
    const events = held.split("\n\n");
    held = events.pop();
    for (const event of events) {
      const text = event.replace(/^data: /, "");
      if (text === "[DONE]") return;
      const found = JSON.parse(text);
      if (found.error) throw new Error(found.error.message);
      const choice = found.choices?.[0];
      if (choice) yield choice.text ?? choice.delta?.content ?? "";
    }
  }
}

function settings() {
  const parts = { tokens: number(Math.max(1, Math.min(120, model.context >> 1)), 1, model.context), temperature: number(0.7, 0, 2, 0.1), seed: number(0, 0, 2 ** 31 - 1) };
  const row = make("div", { className: "fields" }, ...Object.entries(parts).map(([name, input]) => field(name, input)));
  return { row, read: () => ({ max_tokens: +parts.tokens.value, temperature: +parts.temperature.value,
    seed: +parts.seed.value }) };
}

function stopper() {
  const one = make("button", { type: "button", textContent: "Stop", hidden: true });
  let control;
  one.addEventListener("click", () => control?.abort());
  return { one, begin: () => { control = new AbortController(); one.hidden = false; return control.signal; },
    end: () => { one.hidden = true; } };
}

function write() {
  const prompt = make("textarea", { rows: 3, value: "", placeholder: "The beginning of a text", ariaLabel: "prompt" });
  const out = make("pre", { hidden: true }), set = settings(), stop = stopper();
  const go = button("Write", async () => {
    out.hidden = false;
    out.replaceChildren(make("b", { className: "prompt", textContent: prompt.value }));
    try {
      for await (const piece of stream("completions", { prompt: prompt.value, ...set.read() }, stop.begin())) out.append(piece);
    } catch (error) { if (error.name !== "AbortError") throw error; } finally { stop.end(); }
  });
  return card("Write", prompt, set.row, make("p", { className: "actions" }, go, stop.one), out);
}

function chat() {
  const messages = [], log = make("div", { className: "chat", ariaLive: "polite" });
  const line = make("textarea", { rows: 2, placeholder: "Say something", ariaLabel: "message" });
  const set = settings(), stop = stopper();
  const go = button("Send", async () => {
    const said = line.value.trim();
    if (!said) return;
    line.value = "";
    messages.push({ role: "user", content: said });
    log.append(make("p", { className: "user", textContent: said }));
    const answer = log.appendChild(make("p", { className: "assistant" }));
    let text = "";
    try {
      for await (const piece of stream("chat/completions", { messages, ...set.read() }, stop.begin())) {
        text += piece;
        answer.textContent = text;
      }
    } catch (error) { if (error.name !== "AbortError") { messages.pop(); throw error; } } finally { stop.end(); }
    messages.push({ role: "assistant", content: text });
  });
  line.addEventListener("keydown", event => {
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); go.click(); }
  });
  const fresh = make("button", { type: "button", textContent: "New conversation" });
  fresh.addEventListener("click", () => { messages.length = 0; log.replaceChildren(); });
  return card("Chat", log, line, make("p", { className: "actions" }, go, stop.one, fresh), set.row);
}

function compare() {
  const texts = make("textarea", { rows: 4, placeholder: "One text a line", ariaLabel: "texts" }), out = make("div");
  const go = button("Compare", async () => {
    const input = texts.value.split("\n").filter(one => one.trim());
    const { data } = await ask("embeddings", { input });
    const unit = data.map(({ embedding: v }) => { const n = Math.hypot(...v) || 1; return v.map(x => x / n); });
    const cell = (a, b) => unit[a].reduce((sum, x, k) => sum + x * unit[b][k], 0).toFixed(3);
    out.replaceChildren(table(["cosine", ...input], input.map((text, i) => [text, ...input.map((_, j) => cell(i, j))])));
  });
  return card("How alike texts are", texts, make("p", { className: "actions" }, go), out);
}

// Everything else

function table(columns, rows) {
  const head = make("tr", {}, ...columns.map(name => make("th", { textContent: name })));
  const body = rows.map(row => make("tr", {}, ...row.map(value => make("td", { textContent: value }))));
  return make("div", { className: "wide" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
}

function bars(answers) {
  return make("div", { className: "bars" }, ...answers.map(({ label, probability, cosine }) => {
    const share = probability ?? cosine ?? 0;
    const bar = make("i");
    bar.style.width = percent(Math.max(0, share));
    return make("div", {}, make("span", { textContent: label }), make("b", {}, bar),
      make("small", { textContent: probability === undefined ? share.toFixed(3) : percent(share) }));
  }));
}

/** Images that were dropped or chosen, as data: URLs. */
function images(changed) {
  const chosen = make("input", { type: "file", accept: "image/*", multiple: true, ariaLabel: "images" });
  const zone = make("div", { className: "drop" }, make("p", { textContent: "Drop images here, or choose them" }), chosen);
  const take = async files => {
    const read = file => new Promise((done, fail) => {
      const reader = Object.assign(new FileReader(), { onload: () => done(reader.result), onerror: fail });
      reader.readAsDataURL(file);
    });
    const found = await Promise.all([...files].filter(file => file.type.startsWith("image/")).map(read));
    if (found.length) changed(found); else say("these are no images", true);
  };
  chosen.addEventListener("change", () => take(chosen.files));
  zone.addEventListener("dragover", event => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", event => { event.preventDefault(); zone.classList.remove("over"); take(event.dataTransfer.files); });
  return zone;
}

const colour = k => getComputedStyle(root).getPropertyValue(`--c${k % 20}`).trim();

/** An image at a size that can be seen, with something drawn over it in its own pixels. */
async function canvas(source, draw) {
  const image = new Image();
  image.src = source;
  await image.decode();
  const times = Math.max(1, Math.floor(360 / Math.max(image.naturalWidth, image.naturalHeight)));
  const one = make("canvas", { width: image.naturalWidth * times, height: image.naturalHeight * times });
  const pen = one.getContext("2d");
  pen.imageSmoothingEnabled = false;
  pen.drawImage(image, 0, 0, one.width, one.height);
  await draw?.(pen, times, one);
  return one;
}

function box(pen, [x0, y0, x1, y1], label, tone) {
  pen.strokeStyle = pen.fillStyle = tone;
  pen.lineWidth = 2;
  pen.strokeRect(x0, y0, x1 - x0, y1 - y0);
  pen.font = "12px system-ui";
  const wide = pen.measureText(label).width + 8, top = Math.max(0, y0 - 16);
  pen.fillRect(x0, top, wide, 16);
  pen.fillStyle = "#fff";
  pen.fillText(label, x0 + 4, top + 12);
}

async function mask(pen, one, answer, legend) {
  const shape = new Image();
  shape.src = `data:image/png;base64,${answer.mask}`;
  await shape.decode();
  const plain = make("canvas", { width: shape.naturalWidth, height: shape.naturalHeight }), ink = plain.getContext("2d");
  ink.drawImage(shape, 0, 0);
  const data = ink.getImageData(0, 0, plain.width, plain.height), seen = new Set();
  const tones = answer.labels.map((_, k) => colour(k).match(/\w\w/g).map(pair => parseInt(pair, 16)));
  for (let i = 0; i < data.data.length; i += 4) {
    const k = data.data[i];
    seen.add(k);
    data.data.set([...(tones[k] ?? [0, 0, 0]), k ? 140 : 0], i);
  }
  ink.putImageData(data, 0, 0);
  pen.drawImage(plain, 0, 0, one.width, one.height);
  legend.append(...[...seen].sort((a, b) => a - b).map(k => {
    const mark = make("i");
    mark.style.color = colour(k);
    return make("span", {}, mark, `${answer.labels[k]} ${percent(answer.shares[answer.labels[k]])}`);
  }));
}

async function showImage(source, answer) {
  if (answer.image) return make("figure", {}, await canvas(source), await canvas(`data:image/png;base64,${answer.image}`));
  if (answer.objects) {
    const names = [...new Set(answer.objects.map(found => found.label))];
    const drawn = await canvas(source, (pen, times) => answer.objects.forEach(found => box(pen, found.box.map(x => x * times),
      `${found.label} ${percent(found.score)}`, colour(names.indexOf(found.label)))));
    const rows = answer.objects.map(found => [found.label, percent(found.score), found.box.map(x => x.toFixed(1)).join(", ")]);
    return make("figure", {}, drawn, rows.length ? table(["object", "score", "box"], rows) : "nothing was found");
  }
  if (answer.mask) {
    const legend = make("p", { className: "legend" });
    return make("figure", {}, await canvas(source, (pen, _, one) => mask(pen, one, answer, legend)), legend);
  }
  const drawn = await canvas(source, (pen, times, one) => answer.box && box(pen, answer.box.map((x, k) =>
    x * (k % 2 ? one.height : one.width)), answer.answers[0].label, colour(1)));
  return make("figure", {}, drawn, bars(answer.answers), ...(model.schema.form === "AskImages" ? [evidence(source)] : []));
}

/** Where the network looked, on demand: the heat map of the most likely class. */
function evidence(source) {
  const out = make("div");
  const go = button("Where did it look?", async () => {
    place(out, await send("/part/own", { run: root.dataset.run, step: model.step, text: "", image: source }));
    go.remove();
  });
  go.className = "";
  return make("div", {}, go, out);
}

const lines = input => input.value.split("\n").filter(one => one.trim());

function ofImages(out, { labels = false, threshold = false, back = false } = {}) {
  let held = [];
  const names = make("textarea", { rows: 3, placeholder: "One name or caption a line", ariaLabel: "labels" });
  const least = number(0.25, 0, 1, 0.05), way = make("input", { type: "checkbox" });
  const run = async () => {
    if (!held.length) return;
    const body = { images: held };
    if (labels) body.labels = lines(names);
    if (threshold) body.threshold = +least.value;
    if (back) body.back = way.checked;
    const { answers } = await ask("predict", body);
    out.replaceChildren(...await Promise.all(answers.map((answer, i) => showImage(held[i], answer))));
  };
  const zone = images(found => { held = found; go.click(); }), go = button("Ask", run);
  const more = [labels && field("labels", names), threshold && field("threshold", least), back && field("back", way)];
  return [zone, ...more.filter(Boolean), make("p", { className: "actions" }, go)];
}

function ofTexts(out) {
  const texts = make("textarea", { rows: 4, placeholder: "One text a line", ariaLabel: "texts" });
  const go = button("Ask", async () => {
    const { answers } = await ask("predict", { texts: lines(texts) });
    out.replaceChildren(...answers.map(answer => card(answer.input, answer.tags
      ? table(["word", "tag", "probability"], answer.tags.map(t => [t.word, t.tag, percent(t.probability)]))
      : answer.text !== undefined ? make("pre", { textContent: answer.text }) : bars(answer.answers))));
  });
  return [texts, make("p", { className: "actions" }, go)];
}

function ofRecords(out) {
  const columns = Object.entries(model.schema.request.properties.records.items.properties ?? {});
  const inputs = columns.map(([name, about], i) => {
    const input = make("input", { autocomplete: "off" });
    if (!about.examples) { input.inputMode = about.format === "date" ? "text" : "decimal"; return [name, input]; }
    const list = make("datalist", { id: `known-${i}` }, ...about.examples.map(value => make("option", { value })));
    input.setAttribute("list", list.id);
    root.append(list);
    return [name, input];
  });
  const read = text => text.trim() === "" ? null : Number.isNaN(Number(text)) ? text : Number(text);
  const go = button("Predict", async () => {
    const record = Object.fromEntries(inputs.map(([name, input]) => [name, read(input.value)]));
    const { answers: [answer] } = await ask("predict", { records: [record] });
    const value = typeof answer.prediction === "number" ? answer.prediction.toPrecision(5) : answer.prediction;
    const sure = answer.probability === undefined ? "" : ` (${percent(answer.probability)})`;
    out.replaceChildren(make("p", { className: "big-answer", textContent: value + sure }));
  });
  const lists = [...root.querySelectorAll("datalist")];
  return [make("div", { className: "fields" }, ...inputs.map(([name, input]) => field(name, input))), ...lists,
    make("p", { className: "actions" }, go)];
}

function ofSamples(out) {
  const parts = { count: number(16, 1, 64), seed: number(0, 0, 2 ** 31 - 1), steps: number(0, 0, 10000) };
  const words = { label: make("input"), prompt: make("input"), guidance: make("input", { inputMode: "decimal" }) };
  const go = button("Sample", async () => {
    const body = Object.fromEntries(Object.entries(parts).map(([name, input]) => [name, +input.value]));
    if (words.label.value) body.label = words.label.value;
    if (words.prompt.value) body.prompt = words.prompt.value;
    if (words.guidance.value) body.guidance = +words.guidance.value;
    const { answers } = await ask("predict", body);
    if (answers[0].image) {
      out.replaceChildren(make("div", { className: "images" }, ...await Promise.all(answers.map(async ({ image, index }) =>
        make("figure", {}, await canvas(`data:image/png;base64,${image}`), make("figcaption", { textContent: index }))))));
    } else {
      out.replaceChildren(table(["sample", "values"], answers.map(a => [a.index, a.values.map(x => x.toFixed(4)).join(", ")])));
    }
  });
  const all = { ...parts, ...words };
  return [make("div", { className: "fields" }, ...Object.entries(all).map(([name, input]) => field(name, input))),
    make("p", { className: "actions" }, go)];
}

/** Graphs and observations as JSON. */
function ofJson(out, name, example) {
  const text = make("textarea", { rows: 8, value: JSON.stringify(example), ariaLabel: name, spellcheck: false });
  const go = button("Ask", async () => {
    let value;
    try { value = JSON.parse(text.value); } catch (error) { throw new Error(`not JSON: ${error.message}`); }
    const { answers } = await ask("predict", { [name]: value });
    const columns = Object.keys(answers[0] ?? {});
    const show = cell => typeof cell === "object" ? JSON.stringify(cell) : typeof cell === "number" ? +cell.toPrecision(5) : cell;
    out.replaceChildren(answers.length ? table(columns, answers.map(answer => columns.map(c => show(answer[c])))) : "no answer");
  });
  return [text, make("p", { className: "actions" }, go)];
}

/** Whole episodes of a policy, filmed. */
function ofEpisodes(out) {
  const parts = { episodes: number(1, 1, 10), seed: number(0, 0, 2 ** 31 - 1) };
  const go = button("Play and film", async () => {
    const { episodes, film } = await send("/api/film", { run: root.dataset.run, seed: +parts.seed.value, episodes: +parts.episodes.value });
    out.replaceChildren(make("img", { src: film, alt: "the episodes", className: "sheet" }),
      table(["episode", "return", "steps"], episodes.map((one, i) => [i + 1, one.return.toFixed(2), one.steps])));
  });
  return [make("div", { className: "fields" }, ...Object.entries(parts).map(([name, input]) => field(name, input))),
    make("p", { className: "actions" }, go)];
}

function predict() {
  const out = make("div", { className: "answers", ariaLive: "polite" });
  const length = model.schema.request.properties.observations?.items?.minItems ?? 1;
  const parts = {
    AskImages: () => ofImages(out), AskCaptions: () => ofImages(out, { labels: true }),
    AskObjects: () => ofImages(out, { threshold: true }), AskMasks: () => ofImages(out),
    AskNamedObjects: () => ofImages(out, { labels: true, threshold: true }),
    AskTranslation: () => ofImages(out, { back: true }), AskTexts: () => ofTexts(out), AskRecords: () => ofRecords(out),
    AskSamples: () => ofSamples(out),
    AskGraphs: () => ofJson(out, "graphs", [{ nodes: 4, edges: [[0, 1], [1, 2], [2, 3]] }]),
    AskActions: () => [...ofEpisodes(out), ...ofJson(out, "observations", [Array(length).fill(0)])],
  }[model.schema.form];
  return card(model.kind, ...parts(), out);
}

chosen.addEventListener("change", open);
open();
