"""A trace as a page to click through: the graph, one node in full, both modes step by step; all in one file."""

from __future__ import annotations

import json
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from descend.tracing.layout import HIGH, WIDE, Layout, Place, layout
from descend.tracing.program import Node
from descend.tracing.table import as_json, cell, cost_row, formula, notes, shorten

if TYPE_CHECKING:
    from descend.tracing.result import Trace

STYLE = """
main { max-width: 1500px; }
.trace { display: grid; grid-template-columns: minmax(0, 3fr) minmax(330px, 2fr); gap: 16px; align-items: start; }
.board { overflow: auto; max-height: 78vh; padding: 10px; }
.board svg { width: auto; margin: 0 auto; max-width: none; }
.panel { position: sticky; top: 12px; max-height: 78vh; overflow: auto; }
.node { cursor: pointer; } .node rect { fill: var(--page); stroke: var(--line); stroke-width: 1.2; }
.node text { text-anchor: middle; fill: var(--ink); font-size: 12px; font-weight: 600; }
.node text.op { fill: var(--soft); font-weight: 400; font-size: 10.5px; }
.node.input rect, .node.parameter rect { rx: 17; } .node.constant rect { stroke-dasharray: 3 3; }
.node.ahead { opacity: .32; } .node.current rect { stroke: var(--c1); stroke-width: 2.6; }
.node.filled rect { fill: color-mix(in srgb, var(--c0) 13%, var(--card)); stroke: var(--c0); }
.node.pulled rect { fill: color-mix(in srgb, var(--c2) 16%, var(--card)); stroke: var(--c2); }
.node.current rect { stroke: var(--c1); }
.node:focus { outline: none; } .node:focus rect { stroke: var(--c1); }
.edge { fill: none; stroke: var(--soft); stroke-opacity: .4; stroke-width: 1.3; }
.edge.on { stroke: var(--c1); stroke-opacity: 1; stroke-width: 2.4; }
.steps { display: flex; gap: 10px; align-items: center; margin-bottom: 12px; flex-wrap: wrap; }
.steps input { flex: 1; min-width: 120px; accent-color: var(--c1); }
.steps button { font: inherit; color: inherit; background: var(--page); border: 1px solid var(--line);
  border-radius: 8px; padding: 3px 12px; cursor: pointer; }
.phase { font-size: 12.5px; color: var(--soft); min-width: 14em; }
.panel h2 { margin: 0; font-size: 19px; } .panel .what { color: var(--soft); font: 13px ui-monospace, Menlo, monospace;
  overflow-wrap: anywhere; margin: 2px 0 12px; }
.panel h3 { margin: 14px 0 4px; } .panel .from { color: var(--soft); font-size: 12.5px; margin: 6px 0 1px; }
.numbers { overflow-x: auto; } .numbers table { font: 12.5px/1.5 ui-monospace, Menlo, Consolas, monospace; }
.numbers td { border: 0; padding: 0 12px 0 0; text-align: right; }
.numbers p { margin: 0; font: 12.5px/1.5 ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
tr[data-node] { cursor: pointer; } tr.current td { color: var(--c1); }
td.mono { font: 12.5px/1.5 ui-monospace, Menlo, Consolas, monospace; }
@media (max-width: 900px) { .trace { grid-template-columns: 1fr; } .panel { position: static; } }
"""

SCRIPT = """
const data = JSON.parse(document.getElementById("trace-data").textContent), n = data.nodes.length;
const range = document.getElementById("step"), phase = document.getElementById("phase");
const panel = document.getElementById("panel"), boxes = [...document.querySelectorAll(".node")];
const lines = [...document.querySelectorAll(".edge")], rows = [...document.querySelectorAll("tr[data-node]")];
const children = data.nodes.map(() => []);
data.nodes.forEach(node => node.parents.forEach((edge, k) => children[edge.index].push([node, edge])));
const tag = (name, text) => Object.assign(document.createElement(name), { textContent: text ?? "" });
const digits = v => typeof v === "number" && !Number.isInteger(v) ? String(Number(v.toPrecision(6))) : String(v);
const grid = rows => {
  const table = tag("table");
  for (const row of rows) {
    const line = table.appendChild(tag("tr"));
    for (const v of row) line.appendChild(tag("td", digits(v)));
  }
  return table;
};
const numbers = t => {
  const box = Object.assign(tag("div"), { className: "numbers" });
  if (t.values === undefined) {
    const few = ["mean", "std", "min", "max"].filter(k => k in t).map(k => k + " " + digits(t[k])).join(", ");
    box.append(tag("p", "shape " + t.shape.join(" x ") + (few ? ": " + few : "")));
    box.append(tag("p", "first " + t.first.map(digits).join(", ") + ", .."));
  } else if (t.shape.length === 0) box.append(grid([[t.values]]));
  else if (t.shape.length === 1) box.append(grid([t.values]));
  else if (t.shape.length === 2) box.append(grid(t.values));
  else box.append(tag("p", JSON.stringify(t.values, (k, v) => typeof v === "number" ? Number(v.toPrecision(6)) : v)));
  return box;
};
const part = (title, ...content) => panel.append(tag("h3", title), ...content);
const from = (text, t) => { panel.append(Object.assign(tag("div", text), { className: "from" }), numbers(t)); };
const show = node => {
  panel.replaceChildren(tag("h2", node.name));
  const what = node.operation + (node.module ? "   in " + node.module : "");
  panel.append(Object.assign(tag("div", what), { className: "what" }));
  part("value", numbers(node.value));
  const local = node.parents.filter(edge => edge.jacobian || edge.pull || edge.push);
  if (local.length) {
    part("local Jacobian");
    for (const edge of local) {
      const name = "∂ " + node.name + " / ∂ " + data.nodes[edge.index].name;
      if (edge.jacobian) from(name, { shape: [0, 0], values: edge.jacobian });
      else panel.append(Object.assign(tag("div", name + ": too large to write out; its action is below"),
        { className: "from" }));
    }
  }
  part("tangent along " + data.along + ", by forward mode");
  if (node.tangent) {
    panel.append(numbers(node.tangent));
    for (const edge of node.parents) if (edge.push && node.parents.length > 1)
      from("J ẋ from " + data.nodes[edge.index].name, edge.push);
  } else panel.append(tag("p", "nothing flows here: 0"));
  part("adjoint, by reverse mode");
  if (node.adjoint) {
    panel.append(numbers(node.adjoint));
    const sent = children[node.index].filter(([, edge]) => edge.pull);
    for (const [child, edge] of sent) from("Jᵀ ȳ from " + child.name, edge.pull);
  } else panel.append(tag("p", "nothing flows here: 0"));
};
const at = s => s < n ? s : 2 * n - 1 - s;
const go = s => {
  s = Math.max(0, Math.min(2 * n - 1, s));
  range.value = s;
  const i = at(s), back = s >= n, node = data.nodes[i];
  phase.textContent = back ? `backward, step ${s - n + 1} of ${n}: adjoints` : `forward, step ${s + 1} of ${n}: values`;
  boxes.forEach((box, j) => {
    box.classList.toggle("current", j === i);
    box.classList.toggle("ahead", !back && j > i);
    box.classList.toggle("filled", back ? j < i : j <= i);
    box.classList.toggle("pulled", back && j >= i && !!data.nodes[j].adjoint);
  });
  rows.forEach((row, j) => row.classList.toggle("current", j === i));
  lines.forEach(line => line.classList.toggle("on", Number(back ? line.dataset.from : line.dataset.to) === i));
  show(node);
  const board = document.querySelector(".board"), frame = board.getBoundingClientRect();
  const box = boxes[i].getBoundingClientRect();
  if (box.top < frame.top || box.bottom > frame.bottom) board.scrollTop += box.top - frame.top - frame.height / 2;
  if (box.left < frame.left || box.right > frame.right) board.scrollLeft += box.left - frame.left - frame.width / 2;
};
const pick = i => go(Number(range.value) >= n ? 2 * n - 1 - i : i);
boxes.forEach((box, i) => box.addEventListener("click", () => pick(i)));
rows.forEach((row, i) => row.addEventListener("click", () => pick(i)));
range.addEventListener("input", () => go(Number(range.value)));
document.getElementById("back").addEventListener("click", () => go(Number(range.value) - 1));
document.getElementById("next").addEventListener("click", () => go(Number(range.value) + 1));
document.getElementById("turn").addEventListener("click", () => go(2 * n - 1 - Number(range.value)));
addEventListener("keydown", event => {
  if (event.target === range) return;
  const moves = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -2 * n, End: 2 * n };
  if (event.key in moves) { go(Number(range.value) + moves[event.key]); event.preventDefault(); }
  if (event.key === "t") go(2 * n - 1 - Number(range.value));
});
const wanted = Number((location.hash.match(/^#(\\d+)$/) || [])[1]);
go(Number.isInteger(wanted) ? wanted : 0);
"""


def body(trace: Trace) -> str:
    """The inside of a page: style, graph, panel, tables, data and script."""
    title = trace.program.title or "trace"
    data = json.dumps(as_json(trace), ensure_ascii=False).replace("</", "<\\/")
    said = " ".join(escape(line[0].upper() + line[1:]) + "." for line in notes(trace))
    return (
        f"<style>{STYLE}</style><header><h1>{escape(title)}</h1>"
        f"<p>Result {trace.result:.6g}. {said} Click a node. → and ← step through the order of evaluation and then"
        " back through the order of the adjoints; t turns around.</p></header>"
        '<div class="steps"><button id="back" title="←">←</button><button id="next" title="→">→</button>'
        '<button id="turn" title="t">turn around</button>'
        f'<input id="step" type="range" min="0" max="{2 * len(trace.program.nodes) - 1}" value="0" aria-label="step">'
        '<span class="phase" id="phase"></span></div>'
        f'<div class="trace"><section class="card board">{graph(trace)}</section>'
        '<section class="card panel" id="panel" aria-live="polite"></section></div>'
        f'<section class="card"><h2>All nodes</h2>{listing(trace)}</section>'
        f'<section class="card"><h2>Cost of each mode</h2>{cost_table(trace)}</section>'
        f'<script type="application/json" id="trace-data">{data}</script><script>{{{SCRIPT}}}</script>'
    )


def graph(trace: Trace) -> str:
    """The graph as SVG: a box for each node, a curve for each edge."""
    program, at = trace.program, layout(trace.program)
    points = [*at.nodes, *(bend for bends in at.bends.values() for bend in bends)]
    width = max(max(p.x for p in at.nodes) + WIDE / 2, max(p.x for p in points) + 10)
    height = max(p.y for p in at.nodes) + HIGH / 2
    edges = [curve(at, parent, node.index) for node in program.nodes for parent in node.parents]
    boxes = [box(node, at.nodes[node.index]) for node in program.nodes]
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return f"<svg {size}>{''.join(edges + boxes)}</svg>"


def curve(at: Layout, parent: int, child: int) -> str:
    """From below the parent to above the node, through the edge's bends."""
    (x, y), (u, v) = at.nodes[parent], at.nodes[child]
    points = [Place(x, y + 17), *at.bends[parent, child], Place(u, v - 17)]
    path = f"M{x:.1f} {y + 17:.1f}"
    for a, b in pairwise(points):
        middle = (a.y + b.y) / 2
        path += f"C{a.x:.1f} {middle:.1f} {b.x:.1f} {middle:.1f} {b.x:.1f} {b.y:.1f}"
    return f'<path class="edge" data-from="{parent}" data-to="{child}" d="{path}"/>'


def box(node: Node, place: Place) -> str:
    tail = (
        node.name if len(node.name) < 18 or not node.leaf else ".." + node.name[-15:]
    )  # of a parameter the end says more
    name, op = escape(shorten(tail, 17)), escape(shorten("" if node.leaf else node.op, 22))
    second = f'<text class="op" y="11">{op}</text>' if op else ""
    hint = f"{node.name}: {cell(node.value)}"
    return (
        f'<g class="node {node.kind}" tabindex="0" transform="translate({place.x:.1f} {place.y:.1f})">'
        f"<title>{escape(hint)}</title>"
        f'<rect x="-64" y="-17" width="128" height="34" rx="7"/><text y="{-2 if op else 4}">{name}</text>{second}</g>'
    )


def listing(trace: Trace) -> str:
    """All nodes in order, with what a cell can hold."""
    found = trace.derivatives
    rows = "".join(
        f'<tr data-node="{node.index}"><td>{node.index + 1}</td><td>{escape(shorten(node.name, 34))}</td>'
        f'<td class="mono">{escape(shorten(formula(trace.program, node), 60))}</td>'
        f'<td class="mono">{escape(cell(node.value))}</td>'
        f'<td class="mono">{escape(cell(found.tangents[node.index]))}</td>'
        f'<td class="mono">{escape(cell(found.adjoints[node.index]))}</td></tr>'
        for node in trace.program.nodes
    )
    head = f"<th></th><th>name</th><th>operation</th><th>value</th><th>tangent along {escape(found.along)}</th>"
    return f'<div class="wide"><table><tr>{head}<th>adjoint</th></tr>{rows}</table></div>'


def cost_table(trace: Trace) -> str:
    heads = ("mode", "passes for the gradient", "FLOPs a pass", "time a pass", "memory beyond the inputs")
    rows = "".join(
        "<tr>" + "".join(f'<td class="{"number" if j else ""}">{escape(x)}</td>' for j, x in enumerate(row)) + "</tr>"
        for row in map(cost_row, trace.costs)
    )
    head = "".join(f'<th class="{"number" if j else ""}">{name}</th>' for j, name in enumerate(heads))
    return f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'
