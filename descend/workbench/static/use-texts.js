// Texts: written, talked with, compared. What is written comes as it is written.
import { button, card, fields, lines, make, number, table } from "/static/parts.js";

/** The pieces of an answer that is streamed. */
async function* stream(model, route, body, signal) {
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

function settings(model) {
  const parts = { tokens: number(Math.max(1, Math.min(120, model.context >> 1)), 1, model.context), temperature: number(0.7, 0, 2, 0.1), seed: number(0, 0, 2 ** 31 - 1) };
  return { row: fields(parts), read: () => ({ max_tokens: +parts.tokens.value, temperature: +parts.temperature.value,
    seed: +parts.seed.value }) };
}

function stopper() {
  const one = make("button", { type: "button", textContent: "Stop", hidden: true });
  let control;
  one.addEventListener("click", () => control?.abort());
  return { one, begin: () => { control = new AbortController(); one.hidden = false; return control.signal; },
    end: () => { one.hidden = true; } };
}

export function write(model) {
  const prompt = make("textarea", { rows: 3, value: "", placeholder: "The beginning of a text", ariaLabel: "prompt" });
  const out = make("pre", { hidden: true }), set = settings(model), stop = stopper();
  const go = button("Write", async () => {
    out.hidden = false;
    out.replaceChildren(make("b", { className: "prompt", textContent: prompt.value }));
    try {
      for await (const piece of stream(model, "completions", { prompt: prompt.value, ...set.read() }, stop.begin())) out.append(piece);
    } catch (error) { if (error.name !== "AbortError") throw error; } finally { stop.end(); }
  });
  return card("Write", prompt, set.row, make("p", { className: "actions" }, go, stop.one), out);
}

export function chat(model) {
  const messages = [], log = make("div", { className: "chat", ariaLive: "polite" });
  const line = make("textarea", { rows: 2, placeholder: "Say something", ariaLabel: "message" });
  const set = settings(model), stop = stopper();
  const go = button("Send", async () => {
    const said = line.value.trim();
    if (!said) return;
    line.value = "";
    messages.push({ role: "user", content: said });
    log.append(make("p", { className: "user", textContent: said }));
    const answer = log.appendChild(make("p", { className: "assistant" }));
    let text = "";
    try {
      for await (const piece of stream(model, "chat/completions", { messages, ...set.read() }, stop.begin())) {
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

export function compare(model, ask) {
  const texts = make("textarea", { rows: 4, placeholder: "One text a line", ariaLabel: "texts" }), out = make("div");
  const go = button("Compare", async () => {
    const input = lines(texts);
    const { data } = await ask("embeddings", { input });
    const unit = data.map(({ embedding: v }) => { const n = Math.hypot(...v) || 1; return v.map(x => x / n); });
    const cell = (a, b) => unit[a].reduce((sum, x, k) => sum + x * unit[b][k], 0).toFixed(3);
    out.replaceChildren(table(["cosine", ...input], input.map((text, i) => [text, ...input.map((_, j) => cell(i, j))])));
  });
  return card("How alike texts are", texts, make("p", { className: "actions" }, go), out);
}
