"""How every page looks. All rules stand inside `.descend`, so that a fragment changes nothing else in a notebook."""

from __future__ import annotations

from descend.web.palette import DARK, LIGHT, PALETTE

FRAME = "body { margin: 0; } body > .descend { min-height: 100vh; }"


def define_colours(colours: tuple[str, ...]) -> str:
    return " ".join(f"--c{k}: {colour};" for k, colour in enumerate(colours))


SERIES = "\n".join(
    f".c{k} {{ stroke: var(--c{k}); }} .c{k} circle {{ fill: var(--c{k}); }} .legend .c{k} i {{ color: var(--c{k}); }}"
    for k in range(PALETTE)
)

COLOURS = f"""
color-scheme: light dark; --page: #f6f7f9; --card: #fff; --ink: #1a2230; --soft: #667085; --line: #e4e7ec;
{define_colours(LIGHT)} --good: #1c7c59;
--bad: #b42318; --bad-page: #fef3f2; --warn: #a15c07; --warn-page: #fef8e8;
@media (prefers-color-scheme: dark) {{ & {{ --page: #0f131a; --card: #171d27; --ink: #e7ebf2; --soft: #8e99ab;
  --line: #283142; {define_colours(DARK)}
  --good: #4cc79a; --bad: #ff9a8f; --bad-page: #2c1715; --warn: #e9b35f; --warn-page: #292114; }} }}
"""

TEXT = """
background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto,
  "Helvetica Neue", sans-serif; -webkit-font-smoothing: antialiased;
--mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
* { box-sizing: border-box; }
main { max-width: 1060px; margin: 0 auto; padding: 40px 20px 60px; }
header { margin-bottom: 26px; }
h1 { font-size: 30px; line-height: 1.2; letter-spacing: -.02em; margin: 0; display: inline; overflow-wrap: anywhere; }
h2 { font-size: 16px; letter-spacing: -.005em; margin: 0 0 10px; }
h2 small { font-size: 12.5px; font-weight: 500; color: var(--soft); margin-left: 6px; }
h3 { font-size: 13px; font-weight: 600; margin: 0 0 6px; }
h3 small { font-size: 12px; font-weight: 400; color: var(--soft); }
header p { margin: 8px 0 0; color: var(--soft); max-width: 85ch; text-wrap: pretty; }
code, .mono { font-family: var(--mono); font-size: .88em; }
.state { display: inline-block; margin-left: 10px; padding: 1px 10px; border-radius: 20px; font-size: 12px;
  font-weight: 600; color: var(--c5); border: 1px solid currentColor; white-space: nowrap; }
h1 + .state { vertical-align: 6px; }
.state.finished, .state.supported, .good { color: var(--good); } .state.running { color: var(--c0); }
.state.interrupted, .state.open, .warn { color: var(--warn); }
.state.failed, .state.refuted, .bad { color: var(--bad); }
.soft { color: var(--soft); } .note { color: var(--soft); margin: -4px 0 10px; font-size: 13.5px; max-width: 90ch; }
.warning { color: var(--bad); background: var(--bad-page); border-radius: 8px; padding: 10px 14px; margin: 0 0 16px;
  font-size: 13.5px; overflow-wrap: anywhere; }
.empty { color: var(--soft); margin: 4px 0; }
pre { margin: 0 0 10px; padding: 14px 16px; border-radius: 8px; background: var(--page); font: 13px/1.55 var(--mono);
  white-space: pre-wrap; overflow-wrap: anywhere; max-height: 560px; overflow-y: auto; }
pre:last-child { margin-bottom: 0; } .prompt { color: var(--c0); font-weight: 600; }
details { margin: 8px 0; } summary { cursor: pointer; } ul { padding-left: 1.2rem; margin: 8px 0; font-size: 13.5px; }
footer { color: var(--soft); font-size: 12.5px; margin-top: 22px; }
"""

CARDS = """
.card, .figures > div { background: var(--card); border: 1px solid var(--line); border-radius: 12px; }
.card { padding: 18px 20px; margin-bottom: 16px; overflow: hidden; } .paper { background: #fff; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin-bottom: 16px; }
.figures > div { padding: 13px 16px 12px; }
.figures b { display: block; font-size: 25px; line-height: 1.25; font-weight: 650; letter-spacing: -.02em;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
.figures b small { font-size: 13px; font-weight: 500; letter-spacing: 0; color: var(--soft); }
.figures span { font-size: 12.5px; color: var(--soft); }
.small { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 290px), 1fr)); gap: 16px;
  margin-bottom: 16px; }
.small.row2 { grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); }
.small .card { margin: 0; }
.exhibits { display: flex; flex-wrap: wrap; gap: 16px; margin-bottom: 16px; }
.exhibits .card { margin: 0; min-width: 0; } .whole { flex: 1 1 100%; } .half { flex: 1 1 min(100%, 400px); }
.half svg { margin: 0 auto; } .square { max-width: 520px; margin: 0 auto; }
.legend { margin: -2px 0 6px; font-size: 13px; color: var(--soft); display: flex; flex-wrap: wrap; gap: 4px 18px; }
.legend i { display: inline-block; width: 16px; height: 3px; border-radius: 2px; margin-right: 7px;
  vertical-align: 4px; background: currentColor; }
.images { display: flex; flex-wrap: wrap; gap: 12px; } .images + .images, .images + .note { margin-top: 12px; }
.images figure { margin: 0; width: var(--side); }
.images img { display: block; width: 100%; height: auto; image-rendering: pixelated; border-radius: 6px;
  border: 1px solid var(--line); }
figcaption { font-size: 12px; color: var(--soft); text-align: center; margin-top: 3px; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }
.wide table { min-width: 50%; } th { text-align: left; font-weight: 600; color: var(--soft); }
th, td { padding: 4px 18px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; } td.number, th.number { text-align: right; }
.values { columns: 3 270px; column-gap: 34px; } .values div { break-inside: avoid; margin-bottom: 16px; }
.values table { width: 100%; } .values td:first-child { color: var(--soft); white-space: nowrap; }
.values td:last-child { text-align: right; padding-right: 0; overflow-wrap: anywhere; }
"""

CHARTS = """
svg { display: block; width: 100%; height: auto; }
svg text { font: 11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--soft);
  font-variant-numeric: tabular-nums; }
svg text.name { fill: var(--soft); font-style: italic; }
.grid { stroke: var(--line); stroke-width: 1; } .axis { stroke: var(--soft); stroke-width: 1; opacity: .5; }
polyline { fill: none; stroke-linejoin: round; stroke-linecap: round; }
.line { stroke-width: 2; } .faint { stroke-width: 1; opacity: .28; } .thread { stroke-width: 1.3; opacity: .55; }
.points circle { stroke: var(--card); stroke-width: 1; } .dots circle { opacity: .6; stroke: none; }
.bar { fill: var(--c0); }
.links path { fill: none; stroke: var(--soft); stroke-width: 1.1; }
.links.new path { stroke: var(--c1); stroke-width: 2; }
.nodes circle { stroke: var(--card); stroke-width: 1; } .nodes circle.given { stroke: var(--ink); stroke-width: 2.6; }
.nodes circle.wrong { stroke: var(--bad); stroke-width: 2.6; }
circle.mark { fill: none; stroke: var(--ink); stroke-width: 1.6; }
text.mark { fill: var(--ink); font-size: 12px; font-weight: 600; }
.frame { fill: none; stroke: var(--line); } .heat image { image-rendering: pixelated; }
.heat text.in, .heat text.on { text-anchor: middle; fill: var(--ink); } .heat text.on { fill: #fff; }
.cross { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 3 3; pointer-events: none; }
.spot { stroke: var(--card); stroke-width: 2; pointer-events: none; }
#tip { position: fixed; z-index: 9; pointer-events: none; display: none; background: var(--ink); color: var(--card);
  padding: 5px 10px; border-radius: 7px; font-size: 12.5px; line-height: 1.45; font-variant-numeric: tabular-nums;
  white-space: pre; }
@media (max-width: 640px) { .big { overflow-x: auto; } .big svg { min-width: 640px; } }
@media print { & { background: #fff; } .card { break-inside: avoid; } }
"""

STYLE = f".descend {{{COLOURS}{TEXT}{CARDS}{SERIES}{CHARTS}}}"
