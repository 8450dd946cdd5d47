from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

from descend.engine.protocol import Exhibit
from descend.report import write
from tests.report.synthetic import make_run

VOID = {"meta", "img", "br", "line", "circle", "polyline", "rect", "image"}


class Balance(HTMLParser):
    """Fails on a tag that is closed and was not opened, or the other way round."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read_page(path: Path) -> tuple[str, str]:
    """The page and its visible text, after checking that it is whole."""
    html = path.read_text(encoding="utf-8")
    parser = Balance()
    parser.feed(html)
    parser.close()
    assert not parser.open
    return html, " ".join(" ".join(parser.text).split())


def test_the_page_says_what_happened(tmp_path: Path) -> None:
    lines = make_run(tmp_path / "run")
    path = write(tmp_path / "run", [Exhibit("text", "Samples", "def f(): <b>")])
    assert path == tmp_path / "run" / "report.html"
    html, text = read_page(path)
    best = next(line["valid"]["loss"] for line in lines if line["step"] == 150 and "valid" in line)
    assert f"{best:.3f} best validation loss, step 150" in text
    assert "final validation loss" in text
    assert "200 steps" in text
    assert "0:20 training time" in text
    assert "30.1k tokens per second" in text
    assert "1,089,536 parameters" in text
    for title in ("Loss", "Learning rate", "Gradient norm", "Throughput (tokens/s)", "Validation accuracy", "Samples"):
        assert f">{title}</h" in html
    assert "GPT2Config" in text
    assert "python 3.11.7" in text
    assert "one step (median) 100 ms" in text
    assert "a &lt;small&gt; model" in html


def test_nothing_comes_from_elsewhere(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    html, _ = read_page(write(tmp_path / "run", []))
    addresses = set(re.findall(r"https?://[^\s\"']+", html))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of SVG, which nobody fetches
    assert not re.search(r"<(script|link|iframe)[^>]+(src|href)", html)
    assert "prefers-color-scheme: dark" in html


def test_damage_is_shown(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run)
    text = (run / "metrics.jsonl").read_text()
    (run / "metrics.jsonl").write_text('{"step": 1, "loss": <script>\n' + text + '{"step": 9')
    html, said = read_page(write(run, []))
    assert "2 lines could not be read and are left out; the first is line 1" in said
    assert "loss&quot;: &lt;script&gt;" in html


def test_a_run_that_failed_at_once(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run, done=1, event="")
    fault = {"step": 0, "time": 0.0, "event": "failed", "fault": "the loss is nan in layer h.1"}
    (run / "metrics.jsonl").write_text(json.dumps(fault) + "\n")
    _, text = read_page(write(run, []))
    assert "the loss is nan in layer h.1" in text
    assert "No step was logged" in text
    assert "failed" in text


def test_two_players_have_two_curves(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run)
    lines = [{"step": i, "time": i * 0.1, "loss_d": 1 / i, "loss_g": float(i)} for i in range(1, 30)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, text = read_page(write(run, []))
    assert "training loss d training loss g" in text


def test_a_bare_recipe_is_enough(tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text("{}")
    _, text = read_page(write(tmp_path, []))
    assert "0 steps" in text
