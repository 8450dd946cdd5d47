// Texts, records, graphs and observations as forms; samples, the way between two of them, episodes as films.
import { actions, bars, button, card, fields, lines, make, number, percent, table } from "/static/parts.js";
import { send } from "/static/studio.js";
import { canvas } from "/static/use-images.js";

export function ofTexts(out, model, ask) {
  const texts = make("textarea", { rows: 4, placeholder: "One text a line", ariaLabel: "texts" });
  const go = button("Ask", async () => {
    const { answers } = await ask("predict", { texts: lines(texts) });
    out.replaceChildren(...answers.map(answer => card(answer.input, answer.tags
      ? table(["word", "tag", "probability"], answer.tags.map(t => [t.word, t.tag, percent(t.probability)]))
      : answer.text !== undefined ? make("pre", { textContent: answer.text }) : bars(answer.answers))));
  });
  return [texts, actions(go)];
}

export function ofRecords(out, model, ask) {
  const lists = [], inputs = {};
  Object.entries(model.schema.request.properties.records.items.properties ?? {}).forEach(([name, about], i) => {
    const input = inputs[name] = make("input", { autocomplete: "off" });
    if (!about.examples) { input.inputMode = about.format === "date" ? "text" : "decimal"; return; }
    const known = make("datalist", { id: `known-${i}` }, ...about.examples.map(value => make("option", { value })));
    input.setAttribute("list", known.id);
    lists.push(known);
  });
  const read = text => text.trim() === "" ? null : Number.isNaN(Number(text)) ? text : Number(text);
  const go = button("Predict", async () => {
    const record = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, read(input.value)]));
    const { answers: [answer] } = await ask("predict", { records: [record] });
    const value = typeof answer.prediction === "number" ? answer.prediction.toPrecision(5) : answer.prediction;
    const sure = answer.probability === undefined ? "" : ` (${percent(answer.probability)})`;
    out.replaceChildren(make("p", { className: "big-answer", textContent: value + sure }));
  });
  return [fields(inputs), ...lists, actions(go)];
}

/** New examples, and the way from the first one of a seed to that of another. */
export function ofSamples(out, model, ask) {
  const parts = { count: number(16, 1, 64), seed: number(0, 0, 2 ** 31 - 1), steps: number(0, 0, 10000) };
  const words = { label: make("input"), prompt: make("input"), guidance: make("input", { inputMode: "decimal" }) };
  const to = number(1, 0, 2 ** 31 - 1);
  const given = Object.entries({ label: words.label, prompt: words.prompt });
  const said = () => Object.fromEntries(given.filter(([, input]) => input.value).map(([name, input]) => [name, input.value]));
  const go = button("Sample", async () => {
    const body = { ...said(), count: +parts.count.value, seed: +parts.seed.value, steps: +parts.steps.value };
    if (words.guidance.value) body.guidance = +words.guidance.value;
    const { answers } = await ask("predict", body);
    if (answers[0].image) {
      const drawn = answers.map(async ({ image, index }) =>
        make("figure", {}, await canvas(`data:image/png;base64,${image}`), make("figcaption", { textContent: index })));
      out.replaceChildren(make("div", { className: "images" }, ...await Promise.all(drawn)));
    } else if (answers[0].values.length === 2) {
      out.replaceChildren(scatter(answers.map(answer => answer.values)));
    } else {
      out.replaceChildren(table(["sample", "values"], answers.map(a => [a.index, a.values.map(x => x.toFixed(4)).join(", ")])));
    }
  });
  const walk = button("Walk", async () => {
    const body = { run: model.run, step: model.step, seed: +parts.seed.value, to: +to.value, count: 8, steps: +parts.steps.value };
    const found = await send("/api/walk", { ...body, ...said() });
    out.replaceChildren(found.image ? make("img", { src: found.image, alt: "the way from one sample to the other", className: "sheet" })
      : make("pre", { textContent: found.said }));
  });
  walk.className = "";
  return [fields({ ...parts, ...words }), actions(go),
    make("p", { className: "actions" }, make("label", {}, "from this seed to ", to), walk)];
}

/** Points of a plane. */
function scatter(points) {
  const make = (name, attributes) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    return node;
  };
  const [xs, ys] = [0, 1].map(k => points.map(point => point[k]));
  const most = Math.max(...xs.concat(ys).map(Math.abs)) * 1.08 || 1;
  const svg = make("svg", { viewBox: `${-most} ${-most} ${2 * most} ${2 * most}`, class: "chart scatter", role: "img", "aria-label": "samples" });
  for (const [x, y] of points) {
    const dot = svg.appendChild(make("g", { class: "dots c0" })).appendChild(make("circle", { cx: x, cy: -y, r: most / 80 }));
    dot.append(Object.assign(make("title", {}), { textContent: `${x.toFixed(3)}, ${y.toFixed(3)}` }));
  }
  return svg;
}

/** Graphs and observations as JSON. */
export function ofJson(out, model, ask, name, example) {
  const text = make("textarea", { rows: 8, value: JSON.stringify(example), ariaLabel: name, spellcheck: false });
  const go = button("Ask", async () => {
    let value;
    try { value = JSON.parse(text.value); } catch (error) { throw new Error(`not JSON: ${error.message}`); }
    const { answers } = await ask("predict", { [name]: value });
    const columns = Object.keys(answers[0] ?? {});
    const show = cell => typeof cell === "object" ? JSON.stringify(cell) : typeof cell === "number" ? +cell.toPrecision(5) : cell;
    out.replaceChildren(answers.length ? table(columns, answers.map(answer => columns.map(c => show(answer[c])))) : "no answer");
  });
  return [text, actions(go)];
}

/** Whole episodes of a policy, filmed: in its environment, or with a simulated arm. */
export function ofEpisodes(out, model) {
  const parts = { episodes: number(1, 1, 10), seed: number(0, 0, 2 ** 31 - 1) };
  const instruction = make("input", { placeholder: "what each scene says" });
  const go = button("Play and film", async () => {
    const body = { run: model.run, step: model.step, seed: +parts.seed.value, episodes: +parts.episodes.value };
    if (model.acts) Object.assign(body, { verb: "act", instruction: instruction.value });
    const { episodes, film } = await send("/api/film", body);
    const rows = model.acts ? episodes.episodes.map((one, i) => [i + 1, one.success ? "done" : "failed", one.steps])
      : episodes.map((one, i) => [i + 1, one.return.toFixed(2), one.steps]);
    out.replaceChildren(make("img", { src: film, alt: "the episodes", className: "sheet" }),
      table(["episode", model.acts ? "ended" : "return", "steps"], rows));
  });
  return [fields(model.acts ? { ...parts, instruction } : parts), actions(go)];
}
