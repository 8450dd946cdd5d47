"""descend explain: code, books and numbers of a system, on the terminal, as JSON and as a page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from descend.catalog.explanation import digits, lines
from descend.catalog.page import format_prose, make_explanation_page
from descend.errors import Mistake
from descend.verbs.explain import command, explain


def test_json_has_the_documented_keys(capsys: pytest.CaptureFixture[str]) -> None:
    command("causal-mask", json=True)
    found = json.loads(capsys.readouterr().out)
    documented = set(re.findall(r"^\s{8}(\w[\w, ]*?)\s{2,}", explain.__doc__ or "", re.MULTILINE))
    names = {name for group in documented for name in group.split(", ")}
    assert set(found) == names
    assert found["code"][0]["path"] == "descend/ops/attention/dot_product.py"
    assert "softmax" in found["code"][0]["equation"]
    assert "Systems:" not in found["code"][0]["equation"]
    assert any("def causal_mask" in piece["text"] for piece in found["code"][0]["pieces"])
    titles = {place["title"] for book in found["books"] for place in book["places"]}
    assert "STAT 940: Deep Learning (Ali Ghodsi)" in titles
    erratum = next(e for e in found["examples"] if e["id"] == "DLD-11.5.2-causal-mask")
    assert erratum["erratum"]
    assert erratum["state"] == "agrees"
    assert set(erratum["values"][0]) == {"key", "printed", "recomputed", "ours", "agree", "reason"}


def test_the_terminal_shows_all_parts_without_colour_codes(capsys: pytest.CaptureFixture[str]) -> None:
    command("causal-mask")
    said = capsys.readouterr().out
    for part in (
        "the code: descend/ops/attention/dot_product.py:",
        "def causal_mask",
        "Vectors of meaning",
        "ERRATUM",
        "agrees",
    ):
        assert part in said
    assert "\x1b" not in said
    assert re.search(r"target +\[cat, sat", said), "words in brackets are not markup"


def test_it_reads_from_everyday_words_to_the_notes(capsys: pytest.CaptureFixture[str]) -> None:
    command("ADAM")
    said = capsys.readouterr().out
    order = [
        "Adam combines momentum",
        "definition ──",
        "θ ← θ − η m̂ / (√v̂ + ε)",
        "the code: descend/ops/updates.py:",
        "def adam_step",
        "the fast form: descend/optim/rules.py:",
        "torch.optim.Adam(",
        "in the books ──",
        "worked examples",
        "demands, ",
        "proof: ",
        "notes on the books ──",
    ]
    places = [said.index(part) for part in order]
    assert places == sorted(places), [part for part, at in zip(order, places, strict=True) if at < 0]
    assert explain("adam").system.note[:40] in said[places[-1] :]


def test_an_example_has_what_it_takes_to_compute_it_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command("layer-norm")
    said = capsys.readouterr().out
    command("layer-norm", html=tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    given = "z = [0.1, 0.25, 0.4], eps = 1e-05"
    assert f"given    {given}" in said
    assert "compute  (z-mean)/sqrt(var+eps), biased var" in said
    assert f"Given {given}" in page
    assert "Compute (z-mean)/sqrt(var+eps), biased var" in page


def test_the_standard_form_is_short_and_a_lab_is_only_named(capsys: pytest.CaptureFixture[str]) -> None:
    command("dropout")
    said = capsys.readouterr().out
    assert "return m * h / (1 - p)" in said
    assert re.search(r"also built in descend/labs/dropout_ensemble.py:\d+  measure", said)
    assert "def measure" not in said


def test_a_system_that_nobody_claims_is_shown_from_the_books(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("descend.catalog.explanation.claims", lambda only: {})
    monkeypatch.setattr("descend.catalog.explanation.proofs", dict)
    command("causal-mask")
    said = " ".join(capsys.readouterr().out.split())
    assert "not built yet" in said
    assert explain("causal-mask").books[0].defines[:40] in said
    assert "def causal_mask" not in said


def test_an_unknown_slug_names_the_nearest() -> None:
    with pytest.raises(Mistake, match=r"no system 'causal-msk'.*causal-mask"):
        command("causal-msk")


class Check(HTMLParser):
    """Balanced tags, and nothing fetched from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "iframe")
        assert not {"src", "href", "onclick"} & {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("slug", ["causal-mask", "pathways-training"])
def test_the_page_is_whole_and_self_contained(slug: str, tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    command(slug, html=path)
    text = path.read_text(encoding="utf-8")
    check = Check()
    check.feed(text)
    assert check.open == []
    assert "@import" not in text
    assert "url(" not in text
    assert "prefers-color-scheme: dark" in text
    assert explain(slug)._repr_html_() in make_explanation_page(explain(slug))


def test_a_page_that_cannot_be_written_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="--html"):
        command("pathways-training", html=tmp_path / "nowhere" / "x.html")


def test_prose_and_mathematics_are_told_apart() -> None:
    html = format_prose("One `name`.\n\n    a < b\n\n    c\n\nTwo.")
    assert html.startswith('<p>One <code>name</code>.</p><div class="math"><div><span><math ')
    assert html.endswith("<span>c</span></div></div><p>Two.</p>")


def test_values_are_short_and_matrices_have_lines() -> None:
    assert digits(0.12345678) == "0.123457"
    assert digits(1557611200) == "1557611200"
    assert digits({"a": [True, "x", None]}) == "{a: [true, x, ]}"
    assert lines([[1.0, 2.0], [3.0, 4.0]]) == ["[1, 2]", "[3, 4]"]
    assert lines([1.0, 2.0]) == ["[1, 2]"]
