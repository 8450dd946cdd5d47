// A trained model in use: a form by what it takes, an answer by what it gives.
import { card, make } from "/static/parts.js";
import { send } from "/static/studio.js";
import { ofEpisodes, ofJson, ofRecords, ofSamples, ofTexts } from "/static/use-forms.js";
import { ofImages } from "/static/use-images.js";
import { space } from "/static/use-space.js";
import { chat, compare, write } from "/static/use-texts.js";

const root = document.getElementById("use"), chosen = document.getElementById("checkpoint");

async function open() {
  root.replaceChildren(make("p", { className: "empty", textContent: "The model is opened …" }));
  let model;
  try {
    const run = root.dataset.run;
    model = { run, ...await send("/api/open", { run, checkpoint: chosen.value }) };
  } catch (error) {
    root.replaceChildren(make("p", { className: "warning", textContent: error.message }));
    return;
  }
  const ask = (route, body) => send(`/model/${model.key}/v1/${route}`, { model: model.model, ...body });
  const pages = [];
  if (model.offers.includes("chat")) pages.push(chat(model));
  if (model.offers.includes("completions")) pages.push(write(model));
  if (model.offers.includes("predict")) pages.push(predict(model, ask));
  if (model.acts) pages.push(act(model));
  if (Object.keys(model.vectors).length) pages[model.vectors.images && model.vectors.texts ? "unshift" : "push"](space(model));
  if (model.offers.includes("embeddings")) pages.push(compare(model, ask));
  root.replaceChildren(...pages);
}

function predict(model, ask) {
  const out = make("div", { className: "answers", ariaLive: "polite" });
  const length = model.schema.request.properties.observations?.items?.minItems ?? 1;
  const images = more => ofImages(out, model, ask, more);
  const parts = {
    AskImages: () => images(), AskCaptions: () => images({ labels: true }), AskObjects: () => images({ threshold: true }),
    AskMasks: () => images(), AskNamedObjects: () => images({ labels: true, threshold: true }),
    AskTranslation: () => images({ back: true }), AskTexts: () => ofTexts(out, model, ask),
    AskRecords: () => ofRecords(out, model, ask), AskSamples: () => ofSamples(out, model, ask),
    AskGraphs: () => ofJson(out, model, ask, "graphs", [model.schema.example]),
    AskActions: () => [...ofEpisodes(out, model), ...ofJson(out, model, ask, "observations", [Array(length).fill(0)])],
  }[model.schema.form];
  return card(model.kind, ...parts(), out);
}

function act(model) {
  const out = make("div", { className: "answers", ariaLive: "polite" });
  return card(model.kind, ...ofEpisodes(out, model), out);
}

chosen.addEventListener("change", open);
open();
