// The form of a recipe: it says what command it stands for while it is filled in, checks it, and starts it.
import { takeFiles } from "/static/drop.js";
import { place, say, send } from "/static/studio.js";

const form = document.getElementById("train"), command = document.getElementById("command");
const wrong = document.getElementById("wrong"), check = document.getElementById("check"), plan = document.getElementById("plan");
const start = form.querySelector("button[type=submit]");
let latest = 0, later;

/** What the form holds: the values that differ from the recipe's own. */
function gather() {
  const values = {};
  for (const one of form.querySelectorAll("[name][data-default]")) {
    const changed = one.value !== one.dataset.default;
    one.closest(".field").classList.toggle("changed", changed);
    if (changed) values[one.name] = one.value;
  }
  const own = name => form.querySelector(`[data-own=${name}]`).value;
  return { recipe: form.dataset.recipe, name: own("name"), budget: own("budget"), values };
}

function tell(message) {
  wrong.hidden = !message;
  wrong.textContent = message;
  start.disabled = check.disabled = Boolean(message);
}

async function show() {
  const mine = ++latest;
  try {
    const found = await send("/api/command", gather());
    if (mine === latest) { command.textContent = found.command ?? ""; tell(found.wrong ?? ""); }
  } catch (error) {
    if (mine === latest) { command.textContent = ""; tell(error.message); }
  }
}

form.addEventListener("input", () => { clearTimeout(later); later = setTimeout(show, 250); });

check.addEventListener("click", async () => {
  check.disabled = true;
  place(plan, '<p class="empty">The data are read and a few steps are measured …</p>');
  try {
    place(plan, await send("/api/plan", gather()));
  } catch (error) {
    place(plan, '<p class="warning"></p>');
    plan.firstElementChild.textContent = error.message;
  }
  check.disabled = false;
  plan.scrollIntoView({ block: "nearest" });
});

form.addEventListener("submit", async event => {
  event.preventDefault();
  start.disabled = true;
  try {
    location.href = (await send("/api/train", gather())).go;
  } catch (error) {
    say(error.message, true);
    start.disabled = false;
  }
});

for (const field of form.querySelectorAll("[data-drop]")) {
  const input = field.querySelector("input");
  takeFiles(field, async path => {
    input.value = path;
    await show();
    if (!check.disabled) check.click(); // what is dropped is looked at before it is trained on
  });
}

show();
