"""Recipes of search on a file of pairs: trained, evaluated, indexed with, and ranked with."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

import descend
from descend import recipes
from descend.classic.bm25 import BM25
from descend.inference.reranker import Reranker
from descend.kinds.changes import change
from descend.kinds.retrieve import compare_within, score_keywords
from descend.tasks.retrieve import WRONG
from tests.close import close

SMALL = {
    "model.width": 16, "model.hidden": 24, "model.depth": 1, "model.heads": 2, "data.vocab": 300, "steps": 6,
    "batch": 8, "eval_every": 3, "save_every": 3, "schedule.warmup": 1,
}  # fmt: skip
ANIMALS, PLACES = ("cat", "dog", "cow", "hen", "pig", "owl"), ("mat", "hill", "barn", "tree", "field", "yard", "road")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    lines = [f"where is the {a} of the {p}\tthe {p} has a {a} that sleeps" for a, p in product(ANIMALS, PLACES)]
    path.write_text("\n".join(lines) + "\n")
    return path


def small(name: str, pairs: Path) -> Any:
    return change(recipes.get(name), {**SMALL, "data.path": str(pairs), "data.valid": 0.3, "data.test": 0.3})


def test_a_run_of_a_bi_encoder_indexes_documents_and_finds_them(pairs: Path, tmp_path: Path) -> None:
    run, result = descend.train(small("bi-encoder-pydoc", pairs), out=tmp_path / "run", quiet=True)
    assert result.step == 6
    told = descend.evaluate(tmp_path / "run")
    assert {"recall@1", "recall@10", "mrr"} <= told["test"].keys()
    facts = small("bi-encoder-pydoc", pairs).build().facts
    assert facts["BM25 on validation"].startswith("recall@1")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.txt").write_text("the barn has a cow that sleeps\n")
    descend.index(tmp_path / "docs", tmp_path / "index", by=str(tmp_path / "run"))
    found = descend.ask(tmp_path / "index", "the barn has a cow that sleeps").sources[0]
    assert found.score == pytest.approx(1, abs=1e-4)
    assert "keywords (BM25)" in run.report.path.read_text()


@pytest.mark.system("cross-and-bi-encoder", "re-ranked")
def test_the_candidates_are_those_of_keyword_search_and_in_training_the_right_one_is_among_them(pairs: Path) -> None:
    recipe = replace(small("cross-encoder-pydoc", pairs), candidates=4)
    parts, _, inputs, _ = recipe.read()
    matches = parts["train"]
    found = recipe.arrays(matches, inputs, taught=False)
    search = BM25().fit([m.document for m in matches])
    best = search.score([m.query for m in matches]).topk(4, dim=1)
    missed = [i for i in range(len(matches)) if i not in best.indices[i].tolist()]
    assert (found["y"] == WRONG).nonzero().flatten().tolist() == missed
    close(found["r"], compare_within(best.values.float()))
    taught = recipe.arrays(matches, inputs, taught=True)
    assert (taught["y"] != WRONG).all()
    for i, y in enumerate(taught["y"].tolist()):
        text = inputs.tokenizer.decode(taught["x"][i, y][taught["mask"][i, y]].tolist())
        assert matches[i].document in text
        assert matches[i].query in text
    assert torch.equal(score_keywords(matches).argmax(1), search.score([m.query for m in matches]).argmax(1))


def test_a_run_of_a_cross_encoder_ranks(pairs: Path, tmp_path: Path) -> None:
    recipe = replace(small("cross-encoder-pydoc", pairs), candidates=4, trust=0.5)
    descend.train(recipe, out=tmp_path / "run", quiet=True)
    told = descend.evaluate(tmp_path / "run")["test"]
    assert {"recall@1", "before", "retrieved", "mrr"} <= told.keys()
    assert told["recall@1"] <= told["retrieved"]
    ranker = Reranker.open(tmp_path / "run")
    assert (ranker.trust, ranker.candidates) == (0.5, 4)
    held = json.loads((tmp_path / "run/checkpoints/best/ranker.json").read_text())
    assert held == {"trust": 0.5, "candidates": 4}
