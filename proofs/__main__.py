"""python -m proofs [names] [--text FILE] ..: train, evaluate, record in RESULTS.json and RESULTS.md.

Validation selects the checkpoint; the test part, where the data has one, reports once. What is interrupted goes on from
its newest checkpoint in runs/proofs when the same command is given again. Some proofs need public data, and are left
out without it:

    --text FILE         tiny Shakespeare's 1,115,394 characters
    --images FOLDER     the IDX files of MNIST
    --pairs FOLDER      Multi30k: train.de, train.en, val.*, test_2016_flickr.*
    --opinions FOLDER   SST-2: train.tsv, dev.tsv, test.tsv
    --cells FOLDER      BCCD: JPEGImages, Annotations, ImageSets/Main
    --citations FOLDER  Planetoid's files of Cora: ind.cora.*
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from descend.catalog.figures import PATH as FIGURES
from descend.data.images.files import cores
from descend.engine.hardware import describe_environment
from descend.verbs.reproduce import measure_run
from proofs.interaction import count_steps

HERE = Path(__file__).parent
RUNS = HERE.parent / "runs" / "proofs"


@dataclass(frozen=True)
class Proof:
    """A claim: this score of this recipe is at least (or at most) the bar, for every seed or on average."""

    recipe: str
    score: str
    bar: float
    higher: bool = True
    split: str = "test"
    seeds: tuple[int, ...] = (0, 1, 2)
    needs: str = ""  # the option that gives the data: see NEEDS
    flags: str = ""  # how the recipe is changed for this data
    minutes: float = 0.0  # the longest that one run may take; 0: any
    source: str = ""
    precision: str = ""  # float32 or bfloat16; empty: as the recipe chooses
    plays: bool = False  # whether environment steps to the bar are counted
    mean: bool = False  # whether the bar is for the mean over the seeds, as papers report it

    @property
    def run(self) -> str:
        """What its runs are called."""
        return f"{self.recipe}-{self.precision}" if self.precision else self.recipe

    @property
    def claim(self) -> str:
        return f"{self.recipe} {self.score}" + (f" in {self.precision}" if self.precision else "")

    @property
    def demand(self) -> str:
        """The bar in words."""
        sign, within = ">=" if self.higher else "<=", f" in {self.minutes:g} min" * bool(self.minutes)
        return f"{'mean ' * self.mean}{sign} {self.bar:g}{within}"

    def holds(self, values: list[float], times: list[float]) -> bool:
        judged = [statistics.mean(values)] if self.mean else values
        enough = all(v >= self.bar if self.higher else v <= self.bar for v in judged)
        return enough and (not self.minutes or max(times) <= 60 * self.minutes)


NEEDS = ("text", "images", "pairs", "opinions", "cells", "citations")
SHAKESPEARE = "nanoGPT's README: 1.4697 with a GPU, 1.88 in 3 minutes on a CPU"
PARALLEL = "--data.tokenizer bpe --data.vocab 6000 --batch 128"
LSTM = f"{PARALLEL} --model.width 256 --model.dropout 0.3 --steps 800 --eval-every 200 --save-every 400"
TRANSFORMER = (
    f"{PARALLEL} --model.width 192 --model.depth 3 --model.heads 6 --model.hidden 512 --model.dropout 0.2 --steps 3400 "
    "--optim.lr 2e-3 --schedule.warmup 400 --ema 0.998 --eval-every 340 --save-every 340"
)
OPINIONS = "--evidence 1.4 --model.missing 0.2 --steps 500 --eval-every 25 --save-every 250"
TUTORIAL = "public tutorials, on their own tokenization: 13.8, 28.3, 36.5"
MOONS = "the entropy of the moons, by quadrature: 1.008"
PROOFS = [
    Proof("lenet-digits", "accuracy", 0.98),
    Proof("mlp-lbfgs-digits", "accuracy", 0.96),
    Proof("mlp-digits", "accuracy", 0.97, seeds=(0, 1, 2, 3, 4)),
    Proof("mlp-mnist", "accuracy", 0.984, seeds=(0,), needs="images"),
    Proof("mlp-wine", "accuracy", 0.94),
    Proof("mlp-breast-cancer", "accuracy", 0.955, source="logistic regression on the same parts: 0.9646"),
    Proof("mlp-moons", "accuracy", 0.93, source="logistic regression on the same parts: 0.8533"),
    Proof("mlp-diabetes", "loss", 0.52, False, source="ridge regression on the same parts: 0.5034"),
    Proof("mlp-csv", "loss", 0.09, False, source="the law that made the prices: 0.0761; ridge regression: 0.0976"),
    Proof("gan-mixture", "quality", 0.90, split="valid"),
    Proof("gan-mixture", "modes", 8, split="valid"),
    *(Proof(f"{game}-{shape}", "quality", 0.90) for game in ("wgan-gp", "spectral") for shape in ("ring", "grid")),
    *(
        Proof(f"{game}-{shape}", "modes", modes)
        for game in ("wgan-gp", "spectral")
        for shape, modes in (("ring", 8), ("grid", 25))
    ),
    Proof("dcgan-digits", "classes", 10, source="by a reader of held-out digits, as for the next three"),
    Proof("dcgan-digits", "distance", 2.0, False, source="real training digits: 1"),
    Proof("conditional-gan-digits", "right", 0.95),
    Proof("progressive-gan-digits", "classes", 9),
    Proof("stylegan-digits", "classes", 9),
    Proof("pix2pix-scenes", "recovered", 0.95),
    Proof("cyclegan-scenes", "recovered", 0.95),
    Proof("realnvp-moons", "nll", 1.03, False, source=MOONS),
    Proof("maf-moons", "nll", 1.05, False, source=MOONS),
    Proof("spline-moons", "nll", 1.05, False, source=MOONS),
    Proof("cnf-moons", "nll", 1.05, False, source=MOONS),
    Proof("flow-matching-moons", "nll", 1.05, False, source=MOONS),
    Proof("ebm-moons", "nll", 1.15, False, source=MOONS),
    Proof("nce-moons", "nll", 1.05, False, source=MOONS),
    Proof("nce-moons", "claimed_nll", 1.10, False),
    Proof("rbm-digits", "pseudo_likelihood", -12.98, source="BernoulliRBM with as many units and epochs: -12.98"),
    Proof("score-mixture", "weight_error", 0.02, False),
    Proof("score-mixture", "plain_weight_error", 0.1),
    Proof("autoencoder-digits", "squared_error", 1.0, False),
    Proof("denoising-ae-digits", "squared_error", 1.2, False),
    Proof(
        "deep-ae-mnist",
        "squared_error",
        4.0,
        False,
        seeds=(0,),
        needs="images",
        source="PCA with 30 components: 13.87; Hinton and Salakhutdinov (2006): 3.00",
    ),
    Proof(
        "vae-mnist", "nll", 90.0, False, seeds=(0,), needs="images", source="pythae's VAE: 89.8, 200 importance samples"
    ),
    *(
        Proof(f"{way}-cartpole", "return", 475, plays=True, source="CartPole-v1 counts as solved at 475")
        for way in ("dqn", "reinforce", "a2c", "trpo", "ppo")
    ),
    Proof("q-frozen-lake", "distance", 0.02, False, source="max |Q − Q*|, Q* by value iteration"),
    Proof("q-cliff", "return", -13, source="the shortest way"),
    Proof("dqn-acrobot", "return", -92),
    Proof("dqn-mountain-car", "return", -195, source="the environment's own reward, not shaped"),
    Proof("ppo-pendulum", "return", -200),
    Proof("act-pick-place", "success", 0.95, source="of 200 episodes"),
    Proof("act-pick-place", "error", 0.01, False, "valid", source="always the mean chunk: 0.0875"),
    Proof("diffusion-policy-detour", "success", 0.95, source="of 200 episodes"),
    Proof("diffusion-policy-pick-place", "success", 0.95, source="of 200 episodes"),
    *(Proof("vla-sort", score, 0.90) for score in ("named", "words_swap", "colours_swap")),
    Proof("gpt2-pydoc", "loss", 4.0, False, "valid", (0,)),
    Proof("gpt2-chars", "loss", 1.88, False, "valid", (0,), "text", source="nanoGPT's README: 1.88 for this size"),
    Proof("gpt2-shakespeare", "loss", 1.50, False, "valid", needs="text", minutes=60, source=SHAKESPEARE),
    Proof("instruct-tasks", "exact", 0.95, source="untuned: 0"),
    Proof("cnn-digits", "accuracy", 0.985),
    Proof("linear-mnist", "accuracy", 0.92, needs="images", source="LeCun et al. 1998: 12% error"),
    Proof("lenet-mnist", "accuracy", 0.9905, needs="images", source="LeCun et al. 1998: 0.95% error"),
    Proof("resnet-mnist", "accuracy", 0.995, seeds=(0,), needs="images", minutes=30),
    Proof("vit-mnist", "accuracy", 0.985, seeds=(0,), needs="images"),
    Proof("clip-scenes", "zero_shot", 0.95),
    Proof("clip-scenes", "recall", 0.40, split="valid", source="by chance: 0.008; an image fits several captions"),
    Proof("open-vocabulary-scenes", "map50", 0.70, source="12 pairs of colour and shape kept apart, among 48 names"),
    Proof("unet-scenes", "mean_iou", 0.95),
    Proof("verify-digits", "accuracy", 0.90),
    *(
        Proof(f"{name}-scenes", "probe", 0.70, source="a linear classifier of the raw pixels: 0.235")
        for name in ("simclr", "moco", "byol", "jepa")
    ),
    *(Proof("yolo-scenes", score, bar, minutes=30) for score, bar in (("map50", 0.97), ("map", 0.80))),
    *(Proof(f"{name}-scenes", "map50", 0.93) for name in ("yolo-v3", "ssd", "faster-rcnn", "rt-detr")),
    Proof("yolo-v1-scenes", "map50", 0.80),
    Proof("detr-scenes", "map50", 0.85),
    Proof("yolo-images", "map50", 0.80, needs="cells", source="abstracts report 0.85 to 0.92 on other splits"),
    Proof("lstm-sentiment", "accuracy", 0.83, needs="opinions", flags=OPINIONS),
    Proof("lstm-translate", "bleu", 5, seeds=(0,), needs="pairs", flags=LSTM, source=TUTORIAL),
    Proof("lstm-attention-translate", "bleu", 15, seeds=(0,), needs="pairs", flags=LSTM, source=TUTORIAL),
    Proof("transformer-translate", "bleu", 35, seeds=(0,), needs="pairs", flags=TRANSFORMER, source=TUTORIAL),
]
# Preferences: opinions that a simulated annotator has put in order.
PROOFS += [
    Proof("reward-opinions", "accuracy", 0.95, source="of pairs of an annotator without noise; by chance: 0.5"),
    Proof("rlhf-opinions", "gain", 1.0, source="reward of what is written less that of the SFT model, same prompts"),
    Proof("rlhf-opinions", "kl", 10, False, source="nats a text, to the SFT model"),
    Proof("rlhf-opinions", "quality", 0.0, source="the true quality of the answers that SFT learned from: -0.63"),
]
# Nodes, whole graphs and links.
PROOFS += [
    *(
        Proof(f"{name}-cora", "accuracy", bar, seeds=tuple(range(20)), needs="citations", source=source, mean=True)
        for name, bar, source in (
            ("gcn", 0.815, "Kipf and Welling (2017): 0.815"),
            ("gat", 0.825, "Velickovic et al. (2018): 0.830"),
            ("sage", 0.80, ""),
            ("chebnet", 0.80, "Kipf and Welling (2017): 0.812"),
            ("mlp", 0.55, "the control, which sees no citation; Yang et al. (2016): 0.551 for an MLP"),
        )
    ),
    Proof("gcn-karate", "accuracy", 0.91, source="of the 24 members that neither teach nor select"),
    Proof("gcn-imports", "accuracy", 0.80, source="always the most frequent package: 0.26"),
    Proof("sage-sampled", "accuracy", 0.95),
    Proof("gin-rings", "accuracy", 0.95),
    Proof("graph-network-molecules", "r2", 0.95, source="predicting the mean: 0"),
    Proof("link-imports", "auc", 0.90, source="by the degrees of both ends alone: see the run's facts"),
]
# The same figures in both precisions: a language model, a convolutional network, a network of matrices.
PROOFS += [
    Proof(recipe, score, bar, higher, split, precision=precision)
    for recipe, score, bar, higher, split in (
        ("gpt2-pydoc", "loss", 4.0, False, "valid"),
        ("cnn-digits", "accuracy", 0.985, True, "test"),
        ("mlp-digits", "accuracy", 0.97, True, "test"),
    )
    for precision in ("float32", "bfloat16")
]


class Proven(NamedTuple):
    """What a run came to."""

    scores: dict[str, dict[str, float]]
    """By split."""
    seconds: float
    played: int | None
    """Environment steps until validation first reached the bar, where they are counted."""


def run(proof: Proof, seed: int, data: str, threads: int) -> Proven:
    """Train (or go on) and evaluate, as a user would."""
    folder = RUNS / f"{proof.run}-{seed}"
    words = ["--seed", str(seed), *proof.flags.split(), *(["--data.path", data] if data else [])]
    words += ["--precision", proof.precision] if proof.precision else []
    found = measure_run(proof.recipe, words, folder, threads)
    played = count_steps(folder, proof.score, proof.bar) if proof.plays else None
    return Proven(found.scores, found.seconds, played)


def prove(proofs: list[Proof], data: dict[str, str], at_once: int) -> dict[str, dict[str, object]]:
    """Every claim with its figures; runs are shared between claims about one recipe."""
    threads = max(1, cores() // at_once)
    found: dict[str, dict[str, object]] = {}
    with ThreadPoolExecutor(at_once) as pool:
        runs = {}
        for proof in proofs:
            for seed in proof.seeds:
                if (proof.run, seed) not in runs:
                    given = data[proof.needs] if proof.needs else ""
                    runs[proof.run, seed] = pool.submit(run, proof, seed, given, threads)
        for proof in proofs:
            these = [runs[proof.run, seed].result() for seed in proof.seeds]
            found[proof.claim] = told = outcome(proof, these, threads)
            print(f"{proof.claim}: {told['values']} -> {'holds' if told['holds'] else 'FAILS'}", flush=True)
            record(found)
    for name, seed in runs:
        shutil.rmtree(RUNS / f"{name}-{seed}")
    return found


def outcome(proof: Proof, runs: list[Proven], threads: int) -> dict[str, object]:
    """What the runs of a claim say."""
    here = describe_environment()
    values, times = [run.scores[proof.split][proof.score] for run in runs], [run.seconds for run in runs]
    return {
        "bar": proof.demand,
        "split": proof.split,
        "seeds": list(proof.seeds),
        "values": values,
        "mean": statistics.mean(values),
        "spread": statistics.stdev(values) if len(values) > 1 else 0.0,
        "seconds": times,
        "holds": proof.holds(values, times),
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{here['cpu']}, {threads} of {here['cores']} cores, torch {here['torch']}",
        "source": proof.source,
        **({"environment steps to the bar": [run.played for run in runs]} if proof.plays else {}),
    }


def record(new: dict[str, dict[str, object]]) -> None:
    """Merge into RESULTS.json and write the table."""
    path = HERE / "RESULTS.json"
    results = {**(json.loads(path.read_text()) if path.exists() else {}), **new}
    path.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n")
    lines = [
        "# What was proven by training",
        "",
        "`make prove` trains each recipe from scratch, once per seed; validation selects, test reports once.",
        "",
        "| claim | bar | split | mean ± spread | seeds | minutes per run | holds | date, machine |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, r in sorted(results.items()):
        values = ", ".join(f"{v:.4g}" for v in r["values"])
        minutes, seeds = max(r["seconds"]) / 60, len(r["seeds"])
        if played := r.get("environment steps to the bar"):
            values += f"; after {', '.join(f'{n:,}' if n else 'never' for n in played)} environment steps"
        lines.append(
            f"| {name} | {r['bar']} | {r['split']} | {r['mean']:.4g} ± {r['spread']:.2g} ({values}) | {seeds} "
            f"| {minutes:.1f} | {'yes' if r['holds'] else 'NO'} | {r['date']}, {r['machine']} |"
        )
    (HERE / "RESULTS.md").write_text("\n".join(lines) + "\n")
    FIGURES.write_text(json.dumps(publish(results), indent=1) + "\n")


def publish(results: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The results as `descend reproduce` reads them, with what it takes to train them again."""
    kept = ("split", "bar", "seeds", "values", "mean", "spread", "seconds", "date", "machine", "holds", "source")
    told = ("recipe", "score", "flags", "precision", "needs")
    return [
        {"claim": proof.claim, **{k: getattr(proof, k) for k in told}, **{k: results[proof.claim][k] for k in kept}}
        for proof in PROOFS
        if proof.claim in results
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs", description=__doc__)
    parser.add_argument("recipes", nargs="*", help="which recipes; all by default")
    for name in NEEDS:
        parser.add_argument(f"--{name}", default="", help="data for the proofs that need it; see above")
    parser.add_argument("--at-once", type=int, default=1, help="runs beside each other, each on its share of the cores")
    options = parser.parse_args()
    data = {name: getattr(options, name) for name in NEEDS}
    wanted = [p for p in PROOFS if not options.recipes or p.recipe in options.recipes]
    skipped = [p for p in wanted if p.needs and not data[p.needs]]
    if skipped:
        told = ", ".join(f"{p.recipe} (--{p.needs})" for p in skipped)
        print(f"skipped, their data is not given: {told}")
    found = prove([p for p in wanted if p not in skipped], data, options.at_once)
    return 0 if all(r["holds"] for r in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
