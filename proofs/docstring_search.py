"""python -m proofs.docstring_search: summaries of the standard library's docstrings find their bodies, in three ways.

    by BM25             keyword search, nothing is trained
    by the bi-encoder   bi-encoder-pydoc, from random weights; cosines
    re-ranked           the 10 nearest of the bi-encoder, read again by cross-encoder-pydoc with the question

recall@1 on the test part, whose documents and code neither model has seen: 1 where the right body of all test bodies
comes first. Both recipes are trained for each seed as a user would, and recorded in RESULTS.json. What is interrupted
goes on from its newest checkpoint when the same command is given again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from descend.data.text.docstrings import Match
from descend.data.text.passages import Passage
from descend.engine.run import Run
from descend.inference.passage_index import Found
from descend.inference.reranker import Reranker
from descend.inference.trained import load_trained
from descend.kinds.retrieve import encode_part, score_keywords
from descend.kinds.saved import read_saved
from descend.metrics.retrieval import pairs, recall
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from proofs.__main__ import RUNS, Proof, Proven, outcome, record

CLAIM = "docstring search, recall@1"
BM25, GAIN = 0.43, 0.10  # of keyword search at least, and what vectors have to find beyond it


def train(recipe: str, seed: int) -> tuple[Path, float]:
    """The run, and its seconds."""
    cli, folder = str(Path(sys.executable).with_name("descend")), RUNS / f"{recipe}-{seed}"
    began = time.perf_counter()
    begun = any(folder.glob("checkpoints/step-*"))
    fresh = [cli, "train", recipe, "--seed", str(seed), "--out", str(folder), "--replace", "--quiet"]
    command = [cli, "resume", str(folder), "--quiet"] if begun else fresh
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder, time.perf_counter() - began


def compare(vectors: Path, ranker: Path) -> dict[str, float]:
    """recall@1 of the three ways on the test part."""
    saved: Any = read_saved(Run.open(vectors).recipe, vectors / "recipe.json").recipe
    test: list[Match] = saved.data.read()["test"]
    trained = load_trained(vectors)
    inputs = Inputs.of(Tokenizer.load(trained.folder), trained.model.longest)
    cosines = encode_part(trained.model, saved.arrays(test, inputs))
    opened = Reranker.open(ranker)
    hits = 0
    for i, match in enumerate(test):
        near = cosines[i].topk(opened.candidates)
        passages = [Passage(test[j].document, str(j), 1, 1) for j in near.indices.tolist()]
        found = [Found(one, score) for one, score in zip(passages, near.values.tolist(), strict=True)]
        hits += opened.rank(match.query, found)[0].passage.file == str(i)
    right = pairs(len(test))
    return {
        "by BM25": recall(score_keywords(test), right),
        "by the bi-encoder": recall(cosines, right),
        "re-ranked": hits / len(test),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.docstring_search", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    seeds = parser.parse_args().seeds
    threads = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))
    torch.set_num_threads(threads)
    runs: list[Proven] = []
    holds: dict[str, bool] = {}
    for n, seed in enumerate(seeds, 1):
        (vectors, first), (ranker, second) = train("bi-encoder-pydoc", seed), train("cross-encoder-pydoc", seed)
        found = compare(vectors, ranker)
        runs.append(Proven({"test": found}, first + second, None))
        keywords = found["by BM25"]
        least = max(run.scores["test"]["by the bi-encoder"] for run in runs)
        for way, bar in (("by BM25", BM25), ("by the bi-encoder", keywords + GAIN), ("re-ranked", least)):
            proof = Proof(CLAIM, way, round(bar, 4), seeds=tuple(seeds[:n]))
            told = outcome(proof, runs, threads)
            record({proof.claim: told})
            holds[way] = bool(told["holds"])
            print(f"{proof.claim}, seed {seed}: {found[way]:.4f} ({told['bar']})", flush=True)
    return 0 if all(holds.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
