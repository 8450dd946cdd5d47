// Search and map: what lies near to a text or an image, and where everything lies.
import { takeFiles } from "/static/drop.js";
import { actions, button, card, field, make } from "/static/parts.js";
import { load, place, say, send } from "/static/studio.js";

const read = file => new Promise((done, fail) => {
  const reader = Object.assign(new FileReader(), { onload: () => done(reader.result), onerror: fail });
  reader.readAsDataURL(file);
});

export function space(model) {
  const { images, texts, words } = model.vectors;
  const source = make("select", {}, ...[
    ["data", "the validation data of the run"], images && ["folder", "a folder of images"], texts && ["texts", "texts of my own"],
  ].filter(Boolean).map(([value, text]) => make("option", { value, textContent: text })));
  const path = make("input", { placeholder: "a path, or drop it here", ariaLabel: "folder of images", autocomplete: "off" });
  const folder = make("label", { className: "field", hidden: true }, make("span", { textContent: "folder" }), path);
  takeFiles(folder, found => { path.value = found; });
  const own = make("textarea", { rows: 6, hidden: true, placeholder: "One text a line", ariaLabel: "texts to search in" });
  const show = () => { folder.hidden = source.value !== "folder"; own.hidden = source.value !== "texts"; };
  source.addEventListener("change", show);

  const given = () => ({ run: model.run, step: model.step, source: source.value, path: path.value, texts: own.value });
  const found = make("div", { ariaLive: "polite" }), drawn = make("div");
  const wait = (out, text) => out.replaceChildren(make("p", { className: "empty", textContent: text }));
  const near = async query => {
    wait(found, "The inputs are embedded …");
    try { place(found, await send("/part/near", { ...given(), ...query })); } catch (error) { found.replaceChildren(); throw error; }
  };

  const query = make("input", { type: "search", ariaLabel: "what to look for",
    placeholder: words ? "a word" : images && texts ? "what the image shows" : "a text" });
  const search = button("Search", () => near({ text: query.value }));
  query.addEventListener("keydown", event => { if (event.key === "Enter") search.click(); });
  const like = make("input", { type: "file", accept: "image/*", ariaLabel: "an image to look for" });
  like.addEventListener("change", async () => {
    if (!like.files[0]) return;
    if (like.files[0].size > 3e6) { say("this image has more than 3 MB: make it smaller", true); return; }
    try { await near({ image: await read(like.files[0]) }); } catch (error) { say(error.message, true); }
  });
  const by = make("select", { ariaLabel: "how" }, make("option", { value: "tsne", textContent: "t-SNE" }),
    make("option", { value: "pca", textContent: "PCA" }));
  const map = button("Draw the map", async () => {
    wait(drawn, "The inputs are embedded, and their vectors laid out …");
    await load(drawn, "/part/map", { ...given(), by: by.value });
  });
  map.className = "";
  return card("Search and map", ...(words ? [] : [field("among", source), folder, own]),
    ...(texts || words ? [actions(query, search)] : []),
    ...(images ? [make("p", { className: "actions" }, make("label", {}, texts ? "or images like " : "images like ", like))] : []),
    found, actions(map, by), drawn);
}
