// What the pages of a model are made of: fields, buttons, tables, bars.
import { say } from "/static/studio.js";

export const make = (tag, attributes = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), attributes);
  node.append(...children);
  return node;
};
export const card = (title, ...body) => make("section", { className: "card" }, make("h2", { textContent: title }), ...body);
export const field = (title, input) => make("label", { className: "field" }, make("span", { textContent: title }), input);
export const number = (value, least, most, step = 1) =>
  make("input", { type: "number", value, min: least, max: most, step, inputMode: "decimal" });
export const percent = share => `${(100 * share).toFixed(1)}%`;

/** The form's fields, by their names. */
export const fields = inputs =>
  make("div", { className: "fields" }, ...Object.entries(inputs).map(([name, input]) => field(name, input)));
export const actions = (...children) => make("p", { className: "actions" }, ...children);
export const lines = input => input.value.split("\n").filter(one => one.trim());

/** A button that works once at a time and tells what went wrong. */
export function button(text, work) {
  const one = make("button", { type: "button", className: "main", textContent: text });
  one.addEventListener("click", async () => {
    one.disabled = true;
    try { await work(); } catch (error) { say(error.message, true); }
    one.disabled = false;
  });
  return one;
}

export function table(columns, rows) {
  const head = make("tr", {}, ...columns.map(name => make("th", { textContent: name })));
  const body = rows.map(row => make("tr", {}, ...row.map(value => make("td", { textContent: value }))));
  return make("div", { className: "wide" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
}

export function bars(answers) {
  return make("div", { className: "bars" }, ...answers.map(({ label, probability, cosine }) => {
    const share = probability ?? cosine ?? 0;
    const bar = make("i");
    bar.style.width = percent(Math.max(0, share));
    return make("div", {}, make("span", { textContent: label }), make("b", {}, bar),
      make("small", { textContent: probability === undefined ? share.toFixed(3) : percent(share) }));
  }));
}
