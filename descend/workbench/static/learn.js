// A worked example with one's own numbers.
import { say, send } from "/static/studio.js";

for (const one of document.querySelectorAll(".own")) {
  const text = one.querySelector("textarea"), out = one.querySelector("pre"), button = one.querySelector("button");
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      let inputs;
      try { inputs = JSON.parse(text.value); } catch (error) { throw new Error(`the inputs are not JSON: ${error.message}`); }
      const { values } = await send("/api/recompute", { example: one.dataset.example, inputs });
      out.textContent = JSON.stringify(values, null, 1);
      out.hidden = false;
    } catch (error) {
      say(error.message, true);
    }
    button.disabled = false;
  });
}
