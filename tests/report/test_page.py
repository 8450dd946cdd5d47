from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

from descend.contracts import Exhibit
from descend.report import write_report
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
    path = write_report(tmp_path / "run", [Exhibit("text", "Samples", "def f(): <b>")])
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
    html, _ = read_page(write_report(tmp_path / "run", []))
    addresses = set(re.findall(r"https?://[^\s\"']+", html))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of SVG, which nobody fetches
    assert not re.search(r"<(script|link|iframe)[^>]+(src|href)", html)
    assert "prefers-color-scheme: dark" in html


def test_damage_is_shown(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run)
    text = (run / "metrics.jsonl").read_text()
    (run / "metrics.jsonl").write_text('{"step": 1, "loss": <script>\n' + text + '{"step": 9')
    html, said = read_page(write_report(run, []))
    assert "2 lines could not be read and are left out; the first is line 1" in said
    assert "loss&quot;: &lt;script&gt;" in html


def test_a_run_that_failed_at_once(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run, done=1, event="")
    fault = {"step": 0, "time": 0.0, "event": "failed", "fault": "the loss is nan in layer h.1"}
    (run / "metrics.jsonl").write_text(json.dumps(fault) + "\n")
    _, text = read_page(write_report(run, []))
    assert "the loss is nan in layer h.1" in text
    assert "No step was logged" in text
    assert "failed" in text


def test_two_players_have_two_curves(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run)
    lines = [{"step": i, "time": i * 0.1, "loss_d": 1 / i, "loss_g": float(i)} for i in range(1, 30)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, text = read_page(write_report(run, []))
    assert "training loss, discriminator training loss, generator" in text


def test_a_bare_recipe_is_enough(tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text("{}")
    _, text = read_page(write_report(tmp_path, []))
    assert "0 steps" in text


def with_series(run: Path, **series: list[float]) -> str:
    make_run(run)
    rows = zip(*series.values(), strict=True)
    lines = [{"step": i, "time": i * 0.1, **dict(zip(series, row, strict=True))} for i, row in enumerate(rows, 1)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_page(write_report(run, []))[0]


def test_the_terms_of_a_loss_have_one_chart(tmp_path: Path) -> None:
    html = with_series(tmp_path / "run", loss=[3.0, 2.0], loss_masked=[2.0, 1.5], loss_next_sentence=[1.0, 0.5])
    loss, _, rest = html.partition(">Loss terms</h2>")
    terms = rest.partition("</section>")[0]
    assert rest
    assert loss.count("</i>training loss<") == 1
    assert "</i>Masked<" in terms
    assert "</i>Next sentence<" in terms
    assert terms.count("<polyline") == 2


def test_what_was_measured_has_small_charts(tmp_path: Path) -> None:
    names = {"loss": [1.0, 0.9], "approximate_kl": [0.01, 0.02], "clip_fraction": [0.1, 0.2], "note": ["a", "b"]}
    html = with_series(tmp_path / "run", **names)  # type: ignore[arg-type]
    assert ">Approximate KL</h3>" in html
    assert ">Clip fraction</h3>" in html
    assert ">Note</h3>" not in html
    assert "Loss terms" not in html


def test_scores_of_one_kind_share_a_chart_and_players_are_not_terms(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run)
    recipe = json.loads((run / "recipe.json").read_text())
    recipe["values"]["optim"] = {"class": "descend.kinds.mixture:Players", "d": {"lr": 1.0}, "g": {"lr": 1.0}}
    (run / "recipe.json").write_text(json.dumps(recipe))
    names = ("loss_d", "loss_g", "loss_real", "loss_fake", "real_score", "fake_score")
    lines = [{"step": i, "time": 0.1, **dict.fromkeys(names, 0.5 + 0.1 * i)} for i in (1, 2)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    html, text = read_page(write_report(run, []))
    assert "Loss training loss, discriminator training loss, generator" in text
    terms = html.partition(">Loss terms</h2>")[2].partition("</section>")[0]
    assert "</i>Fake<" in terms
    assert "</i>Generator<" not in terms
    assert "</i>Real<" in terms
    score = html.partition(">Score</h3>")[2].partition("</section>")[0]
    assert "</i>fake<" in score
    assert "</i>real<" in score
    assert "Real score" not in html


def test_what_is_said_is_said_of_this_run(tmp_path: Path) -> None:
    """The sizes of the built model, one count of parameters, and no embedded table where there is a file."""
    run = tmp_path / "run"
    make_run(run)
    recipe = json.loads((run / "recipe.json").read_text())
    recipe["model"] = {"class": "mlp", "inputs": 6, "hidden": [64, 32], "labels": {"class": "Labels", "names": []}}
    recipe["values"] |= {
        "model": {"class": "mlp", "inputs": 784, "hidden": [64, 32]},
        "data": {"class": "Table", "embedded": "homes", "path": "taxi.csv"},
        "parameters": 5057,
        "takes": "5 s",
        "about": "default: house prices",
    }
    (run / "recipe.json").write_text(json.dumps(recipe))
    text = read_page(write_report(run, []))[1]
    assert "inputs 6" in text
    assert "hidden 64, 32" in text
    assert text.count("1,089,536") == 2  # the headline and the facts
    for wrong in ("784", "5,057", "takes 5 s", "homes", "house prices", "labels.class"):
        assert wrong not in text
