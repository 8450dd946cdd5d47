"""The pages of the documentation name commands that there are, and are made of what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from descend import recipes
from descend.catalog.systems import systems
from descend.cli import VERBS
from documentation.__main__ import HERE, relink
from documentation.reference import write_functions
from documentation.systems import write_system

PAGES = sorted((HERE / "docs" / "pages").glob("*.md"))
KNOWN = {verb.name for group in VERBS.values() for verb in group}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_commands_of_the_pages(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"descend ([a-z][\w-]*)(?: ([a-z][\w-]*))?", " ".join(re.findall(r"`[^`]+`", text)))
    found += re.findall(r"^descend ([\w-]+)(?: ([a-z][\w-]*))?", text, re.MULTILINE)
    assert found
    for verb, name in found:
        assert verb in KNOWN or verb == "NAME", verb
        if verb in ("train", "plan", "reproduce") and name:
            assert name in recipes.names() or name == "my_recipe", name


def test_links_lead_to_pages_of_the_site() -> None:
    text = "[proofs](proofs/RESULTS.md), [code](descend/cli.py), [all](https://example.org), ![p](docs/report.png)"
    assert relink(text) == (
        "[proofs](/ledgers/proven-by-training.md), code, [all](https://example.org), ![p](docs/report.png)"
    )


def test_a_system_has_the_page_that_explain_shows(tmp_path: Path) -> None:
    write_system(tmp_path, systems()["softmax"])
    page = (tmp_path / "softmax.md").read_text(encoding="utf-8")
    assert page.startswith('---\ntitle: "')
    assert "Worked examples" in page


def test_the_reference_has_every_function(tmp_path: Path) -> None:
    import descend

    page = (tmp_path / write_functions(tmp_path)).read_text(encoding="utf-8")
    for name in descend.__all__:
        assert f"## descend.{name}\n" in page, name
