"""The tutorials: a sample is run here, made small; `make tutorials` runs them all as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.tutorials import PAGES, ROOT, Block, list_pages, read_blocks, run_block, run_page

SAMPLE = ("04-masks", "05-passengers", "07-messages")


@pytest.mark.parametrize("name", SAMPLE)
def test_a_tutorial_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(PAGES / f"{name}.md", tmp_path, fast=True, here=True)


def test_there_are_fourteen_and_the_first_page_links_them_all() -> None:
    pages = list_pages()
    assert [page.name[:2] for page in pages] == [f"{k:02}" for k in range(1, 15)]
    linked = (PAGES / "README.md").read_text(encoding="utf-8")
    assert all(f"({page.name})" in linked for page in pages)
    assert "docs/tutorials" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", list_pages(), ids=lambda page: page.stem)
def test_what_is_made_small_is_there(page: Path) -> None:
    blocks = read_blocks(page, fast=False)
    assert sum(block.language == "sh" for block in blocks) >= 2
    assert any(block.expected for block in blocks)
    text = page.read_text(encoding="utf-8")
    for found in re.findall(r"<!-- fast: (.*?) -->", text):
        for change in found.split("; "):
            before, _, after = change.partition(" -> ")
            assert after, change
            assert any(before in block.code for block in blocks), f"{page.name}: no block has {before!r}"
    assert text.count("<!-- expect") == sum(bool(block.expected) for block in blocks), "each stands after a block"


def test_a_block_that_fails_is_noticed(tmp_path: Path) -> None:
    assert run_block(Block("python", "print(6 * 7)", "4."), tmp_path) == "42\n"
    with pytest.raises(RuntimeError, match="exit code 3"):
        run_block(Block("sh", "exit 3"), tmp_path)
    with pytest.raises(RuntimeError, match="exit code 1"):
        run_block(Block("sh", "false | cat"), tmp_path)
    with pytest.raises(RuntimeError, match="no 'b'"):
        run_block(Block("sh", "echo a", "b"), tmp_path)
