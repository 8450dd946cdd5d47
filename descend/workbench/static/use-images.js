// Images: dropped or chosen, shown at a size that can be seen, with what was found in them.
import { actions, bars, button, field, lines, make, number, percent, table } from "/static/parts.js";
import { place, say, send } from "/static/studio.js";

/** Images that were dropped or chosen, as data: URLs. */
export function images(changed) {
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

const colour = k => getComputedStyle(document.getElementById("use")).getPropertyValue(`--c${k % 20}`).trim();

/** An image at a size that can be seen, with something drawn over it in its own pixels. */
export async function canvas(source, draw) {
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

async function showImage(source, answer, model) {
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
  return make("figure", {}, drawn, bars(answer.answers), ...(model.schema.form === "AskImages" ? [evidence(source, model)] : []));
}

/** Where the network looked, on demand: the heat map of the most likely class. */
function evidence(source, model) {
  const out = make("div");
  const go = button("Where did it look?", async () => {
    place(out, await send("/part/own", { run: model.run, step: model.step, text: "", image: source }));
    go.remove();
  });
  go.className = "";
  return make("div", {}, go, out);
}

export function ofImages(out, model, ask, { labels = false, threshold = false, back = false } = {}) {
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
    out.replaceChildren(...await Promise.all(answers.map((answer, i) => showImage(held[i], answer, model))));
  };
  const zone = images(found => { held = found; go.click(); }), go = button("Ask", run);
  const more = [labels && field("labels", names), threshold && field("threshold", least), back && field("back", way)];
  return [zone, ...more.filter(Boolean), actions(go)];
}
