"""The scores of a run in words: what the best checkpoint reached on the validation data, and once on the test data."""

from __future__ import annotations

import math

from descend.report.history import History
from descend.web.markup import Html
from descend.web.parts import make_card, make_table

WORDS = {"kl": "KL", "iou": "IoU", "map": "mAP", "bleu": "BLEU", "f1": "F1", "fid": "FID", "auc": "AUC"}
WORDS |= {"map50": "mAP at IoU 0.5", "map75": "mAP at IoU 0.75", "ar": "AR"}
WORDS |= {f"ar{k}": f"AR with {k} per image" for k in (1, 10, 100)}
WORDS |= {"mae": "MAE", "rmse": "RMSE", "r2": "R²", "d": "discriminator", "g": "generator", "lr": "learning rate"}
IN_UNITS = ("mae", "rmse")  # scores in the unit of what is predicted
LEADING = ("accuracy", "r2", "mean_iou", "perplexity")  # what people ask for where the loss is watched

MEANING = {
    "accuracy": "share of the predictions that are correct",
    "f1": "F1 (harmonic mean of precision and recall), averaged over the classes",
    "auc": "how often a positive ranks above a negative: 1 is perfect, 0.5 is chance",
    "average_precision": "area under the precision-recall curve",
    "mae": "mean absolute error: what a prediction is wrong by, on average",
    "rmse": "root mean squared error: as MAE, but large errors weigh more",
    "r2": "share of the variance explained: 1 is perfect, 0 is what predicting the mean gets",
    "perplexity": "exp(loss): as uncertain as between this many equally likely tokens",
    "mean_iou": "overlap of predicted and true regions (intersection over union), averaged over the classes",
    "map": "average precision of a class, the mean over classes and over IoU 0.5, 0.55, .., 0.95 (COCO)",
    "map50": "the same for boxes that overlap by half",
    "iou": "overlap of predicted and true box (intersection over union)",
    "bleu": "overlap of n-grams with the reference translations, 0 to 100",
    "exact": "share of the answers that are right from beginning to end",
    "robust": "accuracy on adversarial examples",
    "return": "sum of the rewards of an episode",
    "recall": "share of the pairs whose counterpart ranks first",
}


def draw_scores(history: History) -> Html:
    """A table of the best checkpoint's scores; further checkpoints that were tested have a column each."""
    valid, others = history.best_scores, [line for line in history.test if not is_best(history, line["step"])]
    if not valid and not history.test:
        return Html()
    tested = history.tested if len(others) < len(history.test) else {}
    columns = ["score", *(["validation"] if valid else []), *(["test"] if tested else [])]
    columns += [f"test, step {line['step']:,}" for line in others]
    names = dict.fromkeys([*valid, *tested, *(name for line in others for name in line["scores"])])
    rows = []
    for name in sorted(names, key=lambda name: (name == "loss", list(names).index(name))):
        found = [*([valid.get(name)] if valid else []), *([tested.get(name)] if tested else [])]
        found += [line["scores"].get(name) for line in others]
        rows.append([name_score(name, history), *(format_score(value) for value in found), tell_meaning(name, history)])
    return make_card("Scores", make_table([*columns, ""], rows), note=tell_origin(history, bool(tested)))


def is_best(history: History, step: int) -> bool:
    return history.best is not None and history.best[0] == step


def tell_origin(history: History, tested: bool) -> str:
    """Which checkpoint, chosen how."""
    if history.best is None:
        return "Scored on held-out test data."
    direction, score = history.watch
    chosen = f"{'highest' if direction == 'max' else 'lowest'} validation {spell(score)}"
    said = f"The checkpoint of step {history.best[0]:,}, chosen by the {chosen}."
    return said + (" The test data had no part in training or in this choice and were scored once." if tested else "")


def name_score(name: str, history: History) -> str:
    """ "mae" -> "MAE (fare)": with the name of what is predicted, where the score is in its unit."""
    target = history.facts.get("target")
    return f"{title_of(name)} ({target})" if name in IN_UNITS and target else title_of(name)


def tell_meaning(name: str, history: History) -> str:
    """What a score says; the loss of numbers is that of the standardized target."""
    if name == "loss":
        numbers = "r2" in history.best_scores
        return "mean squared error of the standardized target" if numbers else "what training minimizes"
    return MEANING.get(name, "")


def format_score(value: object) -> str:
    """Four digits after the point where the score is a share, four figures elsewhere."""
    if not isinstance(value, int | float):
        return "–"
    return f"{value:.4f}" if math.isfinite(value) and abs(value) <= 1 else f"{value:,.4g}"


def spell(name: str) -> str:
    """approximate_kl -> approximate KL"""
    return " ".join(WORDS.get(word, word) for word in name.split("_"))


def title_of(name: str) -> str:
    """approximate_kl -> Approximate KL"""
    text = spell(name)
    return text if text[1:2].isupper() else text[:1].upper() + text[1:]
