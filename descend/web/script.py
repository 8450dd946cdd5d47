"""What the mouse shows: values along curves and in the cells of a matrix. Nothing is loaded from elsewhere.

`answerMouse(root)` is called once for a page, and again for a part that came later (`workbench/`).
"""

from __future__ import annotations

SCRIPT = """
const tip = document.querySelector(".descend").appendChild(Object.assign(document.createElement("div"), { id: "tip" }));
const show = (event, text) => {
  tip.textContent = text;
  tip.style.display = "block";
  const right = event.clientX + 16 + tip.offsetWidth < innerWidth;
  tip.style.left = (right ? event.clientX + 16 : event.clientX - 16 - tip.offsetWidth) + "px";
  tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 6) + "px";
};
const inside = (svg, event) => {
  const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
  return [(event.clientX - box.left) * view.width / box.width, (event.clientY - box.top) * view.height / box.height];
};
const make = (svg, name, attributes) => {
  const node = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", name));
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  return node;
};
const leave = svg => {
  tip.style.display = "none";
  svg.querySelectorAll(".cross, .spot").forEach(node => node.remove());
};
const answerCurve = svg => {
  const series = JSON.parse(svg.dataset.hover).filter(s => s.px.length);
  const height = svg.viewBox.baseVal.height;
  svg.addEventListener("mouseleave", () => leave(svg));
  if (series.length) svg.addEventListener("mousemove", event => {
    leave(svg);
    const [x] = inside(svg, event);
    const near = s => s.px.reduce((best, px, i) => Math.abs(px - x) < Math.abs(s.px[best] - x) ? i : best, 0);
    const lines = series.map(s => {
      const i = near(s);
      make(svg, "circle", { class: "spot", cx: s.px[i], cy: s.py[i], r: 4.5, style: `fill: var(--c${s.colour})` });
      return `${s.x[i].toLocaleString("en")}   ${s.label} ${s.y[i]}`;
    });
    const at = series[0].px[near(series[0])];
    svg.insertBefore(make(svg, "line", { class: "cross", x1: at, x2: at, y1: 10, y2: height - 34 }), svg.firstChild);
    show(event, lines.join("\\n"));
  });
};
const answerCells = svg => {
  const d = JSON.parse(svg.dataset.cells);
  svg.addEventListener("mouseleave", () => leave(svg));
  svg.addEventListener("mousemove", event => {
    const [x, y] = inside(svg, event), i = Math.floor((y - d.head) / d.cell), j = Math.floor((x - d.left) / d.cell);
    if (!d.values[i] || d.values[i][j] === undefined) return leave(svg);
    show(event, `${d.rows ? d.rows[i] : i} / ${d.columns ? d.columns[j] : j}   ${d.values[i][j]}`);
  });
};
const answerMouse = root => {
  root.querySelectorAll("svg[data-hover]").forEach(answerCurve);
  root.querySelectorAll("svg[data-cells]").forEach(answerCells);
};
answerMouse(document);
"""
