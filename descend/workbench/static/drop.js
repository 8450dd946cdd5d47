// Files and folders that are dropped or chosen: they are copied beside the runs, and their path is what is told.
import { say, send } from "/static/studio.js";

const LANES = 4; // files that are sent at once

/** A file, or all files of a folder, as [path in the folder, file]; hidden files are left out. */
async function* walk(entry, above) {
  if (entry.name.startsWith(".")) return;
  if (entry.isFile) { yield [above + entry.name, await new Promise((done, fail) => entry.file(done, fail))]; return; }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((done, fail) => reader.readEntries(done, fail)); // at most 100 at once
    if (!some.length) return;
    for (const one of some) yield* walk(one, `${above}${entry.name}/`);
  }
}

async function upload(file, query) {
  const answer = await fetch(`/api/upload?${new URLSearchParams(query)}`, { method: "POST", body: file });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error?.message ?? found.error);
  return found;
}

/** A folder of these files; says how far it is. */
async function fill(name, files) {
  const { path, key } = await send("/api/folder", { name });
  let next = 0, done = 0;
  const lane = async () => {
    while (next < files.length) {
      const [inside, file] = files[next++];
      await upload(file, { name: inside, into: key });
      done += 1;
      if (done % 20 === 0 || done === files.length) say(`${name}: ${done} of ${files.length} files`);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return path;
}

/** One file by itself; a folder, or several files, as a folder. */
async function take(files, name) {
  if (!files.length) throw new Error("there is no file in it");
  if (name || files.length > 1) return fill(name || "files", files);
  const [, file] = files[0];
  say(`${file.name} is copied …`);
  const found = await upload(file, { name: file.name });
  say(`${file.name}: ${found.bytes.toLocaleString("en")} bytes`);
  return found.path;
}

async function gather(data) {
  const entries = [...data.items].map(item => item.webkitGetAsEntry()).filter(Boolean); // now: later they are gone
  const files = entries.length ? [] : [...data.files].map(file => [file.name, file]);
  for (const entry of entries) for await (const one of walk(entry, "")) files.push(one);
  const alone = entries.length === 1 && entries[0].isDirectory ? entries[0].name : "";
  return [alone ? files.map(([path, file]) => [path.slice(alone.length + 1), file]) : files, alone];
}

/** Let `zone` take files and folders; `taken` hears the path where they are now. */
export function takeFiles(zone, taken) {
  const hear = async work => {
    try {
      const path = await take(...await work());
      taken(path);
    } catch (error) { say(error.message, true); }
  };
  zone.addEventListener("dragover", event => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", event => {
    event.preventDefault();
    zone.classList.remove("over");
    const found = gather(event.dataTransfer);
    hear(() => found);
  });
  const row = Object.assign(document.createElement("span"), { className: "choose" });
  for (const folder of [false, true]) {
    const input = Object.assign(document.createElement("input"), { type: "file", hidden: true, webkitdirectory: folder });
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: folder ? "Folder …" : "File …" });
    button.addEventListener("click", event => { event.preventDefault(); input.click(); });
    input.addEventListener("change", () => {
      const files = [...input.files].filter(file => !file.name.startsWith("."));
      const name = folder ? files[0]?.webkitRelativePath.split("/")[0] : "";
      hear(() => [files.map(file => [file.webkitRelativePath.split("/").slice(1).join("/") || file.name, file]), name]);
      input.value = "";
    });
    row.append(button, input);
  }
  zone.append(row);
}
