"""How a page looks, and what the mouse shows: no file or script from elsewhere is needed."""

from __future__ import annotations

CSS = """
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --ink: #1a2230; --soft: #667085; --line: #e4e7ec;
  --c0: #2b6cd8; --c1: #d66820; --c2: #23936b; --c3: #8b4fc9; --c4: #c2377a; --c5: #6b7280; --bad: #b42318;
  --bad-page: #fef3f2; }
@media (prefers-color-scheme: dark) { :root { --page: #0f131a; --card: #171d27; --ink: #e7ebf2; --soft: #8e99ab;
  --line: #283142; --c0: #6ea3ff; --c1: #f39b5c; --c2: #4cc79a; --c3: #b98af0; --c4: #f078ae; --c5: #9aa4b5;
  --bad: #ff9a8f; --bad-page: #2c1715; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI",
  Roboto, "Helvetica Neue", sans-serif; -webkit-font-smoothing: antialiased; }
main { max-width: 1060px; margin: 0 auto; padding: 40px 20px 60px; }
header { margin-bottom: 26px; }
h1 { font-size: 30px; line-height: 1.2; letter-spacing: -.02em; margin: 0; display: inline; overflow-wrap:
  anywhere; }
h2 { font-size: 16px; letter-spacing: -.005em; margin: 0 0 10px; }
h3 { font-size: 13px; font-weight: 600; margin: 0 0 6px; } h3 small { font-size: 12px; font-weight: 400; color:
  var(--soft); }
header p { margin: 8px 0 0; color: var(--soft); max-width: 85ch; text-wrap: pretty; }
.state { display: inline-block; margin-left: 10px; padding: 1px 10px; border-radius: 20px; font-size: 12px;
  font-weight: 600; vertical-align: 6px; color: var(--c5); border: 1px solid currentColor; }
.state.finished, .state.supported { color: var(--c2); } .state.running { color: var(--c0); }
.state.interrupted, .state.open { color: var(--c1); } .state.failed, .state.refuted { color: var(--bad); }
.card, .figures > div { background: var(--card); border: 1px solid var(--line); border-radius: 12px; }
.card { padding: 18px 20px; margin-bottom: 16px; overflow: hidden; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin-bottom:
  16px; }
.figures > div { padding: 13px 16px 12px; }
.figures b { display: block; font-size: 25px; line-height: 1.25; font-weight: 650; letter-spacing: -.02em;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
.figures b small { font-size: 13px; font-weight: 500; letter-spacing: 0; color: var(--soft); }
.figures span { font-size: 12.5px; color: var(--soft); }
.small { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 290px), 1fr)); gap: 16px;
  margin-bottom: 16px; }
.small.row2 { grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); }
.exhibits { display: flex; flex-wrap: wrap; gap: 16px; margin-bottom: 16px; }
.exhibits .card { margin: 0; min-width: 0; } .whole { flex: 1 1 100%; } .half { flex: 1 1 min(100%, 400px); }
.half svg { margin: 0 auto; }
.small .card { margin: 0; }
.note { color: var(--soft); margin: -4px 0 10px; font-size: 13.5px; max-width: 90ch; }
.warning { color: var(--bad); background: var(--bad-page); border-radius: 8px; padding: 10px 14px; margin: 0 0
  16px; font-size: 13.5px; overflow-wrap: anywhere; }
.paper { background: #fff; }
.empty { color: var(--soft); margin: 4px 0; }
.legend { margin: -2px 0 6px; font-size: 13px; color: var(--soft); display: flex; flex-wrap: wrap; gap: 4px 18px;
  }
.legend i { display: inline-block; width: 16px; height: 3px; border-radius: 2px; margin-right: 7px;
  vertical-align: 4px; background: currentColor; }
.legend .c0 i { color: var(--c0); } .legend .c1 i { color: var(--c1); } .legend .c2 i { color: var(--c2); }
.legend .c3 i { color: var(--c3); } .legend .c4 i { color: var(--c4); } .legend .c5 i { color: var(--c5); }
svg { display: block; width: 100%; height: auto; }
svg text { font: 11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--soft);
  font-variant-numeric: tabular-nums; }
svg text.name { fill: var(--soft); font-style: italic; }
.grid { stroke: var(--line); stroke-width: 1; } .axis { stroke: var(--soft); stroke-width: 1; opacity: .5; }
polyline { fill: none; stroke-linejoin: round; stroke-linecap: round; }
.line { stroke-width: 2; } .faint { stroke-width: 1; opacity: .28; } .thread { stroke-width: 1.3; opacity: .55; }
.points circle { stroke: var(--card); stroke-width: 1; } .dots circle { opacity: .6; }
.c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); } .c3 { stroke: var(--c3); }
.c4 { stroke: var(--c4); } .c5 { stroke: var(--c5); }
.c0 circle { fill: var(--c0); } .c1 circle { fill: var(--c1); } .c2 circle { fill: var(--c2); } .c3 circle { fill:
  var(--c3); }
.c4 circle { fill: var(--c4); } .c5 circle { fill: var(--c5); } .dots circle { stroke: none; }
circle.mark { fill: none; stroke: var(--ink); stroke-width: 1.6; } text.mark { fill: var(--ink); font-size: 12px;
  font-weight: 600; }
.frame { fill: none; stroke: var(--line); } .heat image { image-rendering: pixelated; }
.heat text.in, .heat text.on { text-anchor: middle; fill: var(--ink); } .heat text.on { fill: #fff; }
.square { max-width: 520px; margin: 0 auto; }
.cross { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 3 3; pointer-events: none; }
.spot { stroke: var(--card); stroke-width: 2; pointer-events: none; }
#tip { position: fixed; z-index: 9; pointer-events: none; display: none; background: var(--ink); color:
  var(--card); padding: 5px 10px; border-radius: 7px; font-size: 12.5px; line-height: 1.45; font-variant-numeric:
  tabular-nums; white-space: pre; }
pre { margin: 0 0 10px; padding: 14px 16px; border-radius: 8px; background: var(--page); font: 13px/1.55
  ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre-wrap;
  overflow-wrap: anywhere; max-height: 560px; overflow-y: auto; }
pre:last-child { margin-bottom: 0; } .prompt { color: var(--c0); font-weight: 600; }
.images { display: flex; flex-wrap: wrap; gap: 12px; } .images figure { margin: 0; width: var(--side); }
.images img { display: block; width: 100%; height: auto; image-rendering: pixelated; border-radius: 6px; border:
  1px solid var(--line); }
figcaption { font-size: 12px; color: var(--soft); text-align: center; margin-top: 3px; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric:
  tabular-nums; }
.wide table { min-width: 50%; } th { text-align: left; font-weight: 600; color: var(--soft); }
th, td { padding: 4px 18px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; } td.number, th.number { text-align: right; }
.values { columns: 3 270px; column-gap: 34px; } .values div { break-inside: avoid; margin-bottom: 16px; }
.values table { width: 100%; } .values td:first-child { color: var(--soft); white-space: nowrap; }
.values td:last-child { text-align: right; padding-right: 0; overflow-wrap: anywhere; }
footer { color: var(--soft); font-size: 12.5px; margin-top: 22px; }
@media (max-width: 640px) { .big { overflow-x: auto; } .big svg { min-width: 640px; } }
@media print { body { background: #fff; } .card { break-inside: avoid; } }
"""

SCRIPT = """
const tip = document.body.appendChild(Object.assign(document.createElement("div"), { id: "tip" }));
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
for (const svg of document.querySelectorAll("svg[data-hover]")) {
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
}
for (const svg of document.querySelectorAll("svg[data-cells]")) {
  const d = JSON.parse(svg.dataset.cells);
  svg.addEventListener("mouseleave", () => leave(svg));
  svg.addEventListener("mousemove", event => {
    const [x, y] = inside(svg, event), i = Math.floor((y - d.head) / d.cell), j = Math.floor((x - d.left) / d.cell);
    if (!d.values[i] || d.values[i][j] === undefined) return leave(svg);
    show(event, `${d.rows ? d.rows[i] : i} / ${d.columns ? d.columns[j] : j}   ${d.values[i][j]}`);
  });
}
"""
