"""descend predict: what a trained model says of your images, texts, tables or graphs."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from descend.errors import Mistake
from descend.inference import open_run
from descend.inference.answers import SIDES, Answered, find_strange, score_answers
from descend.inference.arm_player import ArmPlayer
from descend.inference.detector import LEAST, Detector
from descend.inference.graphs import GraphPredictor, LinkPredictor, NodeClassifier
from descend.inference.image_classifier import ImageClassifier
from descend.inference.inputs import PlainText, describe_reading, list_images
from descend.inference.player import Player
from descend.inference.sampler import Sampler
from descend.inference.saving import check_out, format_csv, write_answers
from descend.inference.segmenter import Segmenter
from descend.inference.single_object_detector import SingleObjectDetector
from descend.inference.table_predictor import TablePredictor
from descend.inference.tagger import Tagger
from descend.inference.text_classifier import SentenceClassifier
from descend.inference.translator import Translator
from descend.inference.writer import Writer
from descend.own_code import use_code
from descend.verbs.objects import check_detection_out, show_objects, write_detections
from descend.verbs.table import format_table

if TYPE_CHECKING:
    from descend.inference import Answerer

BAR = 30  # characters of a bar at 100%
GRAPHS = (NodeClassifier, GraphPredictor, LinkPredictor)
"""What takes graphs."""
LABELLED = (
    SentenceClassifier, Tagger, TablePredictor, ImageClassifier, SingleObjectDetector, Detector, NodeClassifier,
    GraphPredictor,
)  # fmt: skip
"""What has classes of its own."""
DRAWN = (ImageClassifier, Segmenter, SingleObjectDetector, Detector)
"""What takes images."""
OTHER = {Writer: "generate", Player: "evaluate", ArmPlayer: "act", Sampler: "sample", Translator: "edit"}
"""The verb for what classifies nothing."""


def predict(
    run: str | Path,
    *inputs: str | Path,
    top: int = 5,
    heat: str | Path = "",
    labels: Sequence[str] = (),
    checkpoint: str | int = "best",
    out: str | Path = "",
    replace: bool = False,
    text: bool = False,
    threshold: float = LEAST,
) -> list[dict[str, Any]]:
    """Ask a trained model about images, texts, tables or graphs.

    Args:
        run: a run's folder, or a model folder.
        inputs: image files, folders, patterns or lists; texts (with [MASK], for a model that fills in blanks), words,
            sources to be answered; files: .csv, .tsv and .jsonl by the columns of the training data, any other file
            with a text on each line. A name that exists as a file is that file. Graphs: a folder with nodes.csv and
            edges.csv or Planetoid's files, a list of edges, .json, .jsonl, .csv with SMILES.
        top: how many classes, words or new links to return, the most likely first.
        heat: a PNG to write: each image beside where the model looked, or with its mask or boxes laid over it; of a
            detector also a folder, for a file of each image.
        labels: for a CLIP: the classes to choose from; for an open-vocabulary detector: what to look for.
        checkpoint: best, last or a step.
        out: a .csv, .tsv or .jsonl file to write: the input's columns, the prediction and its probability; of a
            detector also a .json file of COCO results, or a folder of YOLO's .txt files.
        replace: write `out` anew where it exists.
        text: the inputs are texts, even where there are files of these names.
        threshold: of a detector: the score below which an object is left out.

    Returns:
        {"input", "answers": [{"label", "probability"}, ..]} of each image or text, with "box" (x0, y0, x1, y1 as shares
        of the image) where the model finds one and "truth" where the file has the label; "cosine" instead of
        "probability" for the neighbours of a word; of a tagger {"input", "tags": [{"word", "tag", "probability"}, ..]};
        of a model that answers sources {"input", "text"}; of a table {"line", target, "probability"} of each record;
        of a detector {"input", "width", "height", "objects": [{"label", "score", "box"}, ..]}, boxes in pixels; of
        graphs {"node", "prediction", "probability"} of each node, {"graph", ..} of each graph, or {"source", "target",
        "probability"} of the most probable new links.
    """
    if top < 1:
        raise Mistake(f"--top {top}: at least 1")
    wanted = Wanted(str(heat), tuple(labels), checkpoint, str(out), replace, text, threshold, top)
    return [answer.as_json(top) for answer in ask(run, inputs, wanted).answers]


class Wanted(NamedTuple):
    """How a model is to be asked: see `predict`."""

    heat: str
    labels: tuple[str, ...]
    checkpoint: str | int
    out: str
    replace: bool
    text: bool
    threshold: float
    top: int


class Asked(NamedTuple):
    """The answers, and what is to be said about them."""

    answers: Sequence[Answered]
    notes: list[str]
    """How inputs were read, where that is not certain; why there is no score."""
    scores: dict[str, float]
    """How right the answers are, where the inputs tell the truth."""


def ask(run: str | Path, inputs: Sequence[str | Path], wanted: Wanted) -> Asked:
    """Open the run, let it answer, and write the files that are asked for."""
    heat, labels, checkpoint, out, replace, text, threshold, top = wanted
    answerer = open_run(run, checkpoint, labels)
    if isinstance(answerer, Detector):
        answerer = answerer.above(threshold)
    elif isinstance(answerer, LinkPredictor):
        answerer = answerer.best(top)
    given: list[str] = [PlainText(i) if text else str(i) for i in inputs]
    check_answerer(run, answerer, given, heat, text)
    assert not isinstance(answerer, Player | ArmPlayer | Sampler | Translator)
    if out:
        (check_detection_out if isinstance(answerer, Detector) else check_out)(Path(out), replace)
    if heat:
        from descend.report.predictions import draw_predictions
        from descend.report.sheet import check_png, write_png

        check_png(Path(heat), "--heat")
    found = answerer.predict(given)
    if heat and isinstance(answerer, DRAWN):
        write_png(Path(heat), draw_predictions(answerer, list_images(given)), "--heat")
    if out and isinstance(answerer, Detector):
        write_detections(Path(out), found, answerer.labels)
    elif out:
        write_answers(Path(out), found)
    texts = not isinstance(answerer, (TablePredictor, *DRAWN, *GRAPHS))
    notes = describe_reading(given) if texts else []
    known = answerer.labels if isinstance(answerer, LABELLED) else ()
    if strange := find_strange(found, known):
        return Asked(found, [*notes, f"no score: the model knows no class {strange!r} ({', '.join(known)})"], {})
    return Asked(found, notes, score_answers(found))


def check_answerer(run: str | Path, answerer: Answerer, given: list[str], heat: str | Path, text: bool) -> None:
    """Refuse what does not fit the kind of model."""
    if isinstance(answerer, Player | ArmPlayer | Sampler | Translator) or (
        isinstance(answerer, Writer) and answerer.continues
    ):
        verb = OTHER[type(answerer)]
        raise Mistake(f"{run} holds a {answerer.trained.kind}, which is not a classifier; use: descend {verb} {run}")
    if not given:
        raise Mistake(f"{run} takes {answerer.takes}; name at least one: descend predict {run} …")
    if heat and answerer.takes != "images":
        raise Mistake(f"--heat is for images, but {run} takes {answerer.takes}")
    if text and answerer.takes in ("images", "a table", "graphs"):
        raise Mistake(f"--text is for texts, but {run} takes {answerer.takes}")


def show(found: list[dict[str, Any]]) -> None:
    """A block for each input: its classes with bars. Colours only in a terminal, and not with NO_COLOR."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    wide = max((len(a["label"]) for row in found for a in row["answers"]), default=0)
    for row in found:
        box = "  ".join(f"{side} {share:.0%}" for side, share in zip(SIDES, row.get("box", ()), strict=False))
        console.print(Text(row["input"], style="bold").append(f"  {box}" * bool(box), style="not bold"))
        for place, answer in enumerate(row["answers"]):
            line = Text(f"  {answer['label']:<{wide}}  ")
            if "reward" in answer:
                console.print(line.append(f" {answer['reward']:7.3f}", style="green" if place == 0 else ""))
                continue
            p = answer.get("probability", answer.get("cosine", 0.0))
            line.append(f"{'█' * round(BAR * max(p, 0)):<{BAR}}", style="green" if place == 0 else "blue")
            console.print(line.append(f" {p:6.1%}" if "probability" in answer else f" {p:6.3f}"))


def show_tags(found: list[dict[str, Any]]) -> None:
    """Each text as a table of its words."""
    print("\n\n".join(format_table(["word", "tag", "probability"], list_tags(row["tags"])) for row in found))


def list_tags(tags: list[dict[str, Any]]) -> list[list[str]]:
    return [[tag["word"], tag["tag"], f"{tag['probability']:.1%}"] for tag in tags]


def show_table(found: list[dict[str, Any]]) -> None:
    """The records as CSV."""
    sys.stdout.write(format_csv(found))


def show_written(found: list[dict[str, Any]]) -> None:
    """Each answer on a line of its own; where there are several, below its source."""
    for row in found:
        print(row["text"] if len(found) == 1 else f"{row['input']}\n  {row['text']}")


def format_scores(scores: dict[str, float]) -> str:
    """accuracy 0.9123, macro F1 0.9011 on 120 records"""
    values = ", ".join(f"{name} {value:.4g}" for name, value in scores.items() if name != "records")
    return f"{values} on {scores['records']:,.0f} answers whose truth the input tells"


def command(
    run: str,
    inputs: tuple[str, ...],
    /,
    *,
    top: int = 5,
    heat: str = "",
    labels: str = "",
    checkpoint: str = "best",
    out: str = "",
    replace: bool = False,
    text: bool = False,
    threshold: float = LEAST,
    code: str = "",
    json: bool = False,
) -> None:
    """Ask a trained model about images, texts, a table or graphs; where the input has the target, say how right it is.

    Args:
        run: a run's folder, or a model folder.
        inputs: image files, folders, patterns or lists; texts, words; files of texts (a text on each line, or .csv,
            .tsv, .jsonl by the columns of the training data); a table; graphs (a folder, edges, .json, .jsonl, SMILES).
        top: how many classes, words or new links to show, the most likely first.
        heat: a PNG to write: where the model looked, the mask of a segmentation model, or the boxes of a detector.
        labels: what a CLIP chooses from, or an open-vocabulary detector looks for, separated by commas.
        checkpoint: best, last or a step.
        out: a .csv, .tsv or .jsonl file to write instead: the input's columns, the prediction, its probability; of a
            detector also a .json file of COCO results, or a folder for YOLO's .txt files.
        replace: write --out anew where it exists.
        text: the inputs are texts, even where there are files of these names.
        threshold: of a detector: the score below which an object is left out.
        code: the file of a recipe or model of your own, where it is not found by its name.
        json: print JSON.

    Examples:
        descend predict runs/demo photos/ "more/*.png" --top 3 --heat heat.png
        descend predict runs/cells blood/ --threshold 0.4 --heat drawn.png --out results.json
        descend predict runs/clip photo.jpg --labels "a red circle, a blue square"
        descend predict runs/opinions reviews.csv --out answers.csv
        descend predict runs/bert-pydoc "the [MASK] statement is used for"
    """
    if top < 1:
        raise Mistake(f"--top {top}: at least 1")
    use_code(code)
    named = [name.strip() for name in labels.split(",") if name.strip()]
    asked = ask(run, inputs, Wanted(heat, tuple(named), checkpoint, out, replace, text, threshold, top))
    for note in asked.notes:
        print(note, file=sys.stderr)
    found = [answer.as_json(top) for answer in asked.answers]
    table = not json and bool(found) and choose_form(found[0]) is show_table
    if out:
        print(f"written {out}: {len(found):,} answers")
    elif json:
        print(json_module.dumps(found, indent=2, ensure_ascii=False))
    elif found:
        show_found(found)
    if heat and not json:
        print(f"written {heat}")
    if asked.scores:  # what is printed for another program stays clean
        print(format_scores(asked.scores), file=sys.stderr if (json or table) and not out else sys.stdout)


def show_found(found: list[dict[str, Any]]) -> None:
    """For people, by what kind of answers they are."""
    choose_form(found[0])(found)


def choose_form(first: dict[str, Any]) -> Callable[[list[dict[str, Any]]], None]:
    """How answers like this one are shown."""
    kinds = {"tags": show_tags, "answers": show, "text": show_written, "objects": show_objects}
    return next((shown for key, shown in kinds.items() if key in first), show_table)
