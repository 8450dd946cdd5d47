"""From a form to the answerer of `inference` and back: files for what it reads from files, nothing computed here.

Inputs go into a folder of their own, which is gone after the answer. A text stays a text, whatever files of the server
have its name.
"""

from __future__ import annotations

import base64
import binascii
import functools
import io
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel
from torch import Tensor

from descend.data.tables.columns import Category, Quantity
from descend.data.tables.dates import Moment
from descend.errors import Mistake
from descend.inference.detector import Detector
from descend.inference.graphs import GraphPredictor, LinkPredictor, NodeClassifier
from descend.inference.image_classifier import ImageClassifier, choose_among
from descend.inference.inputs import PlainText
from descend.inference.open_vocabulary import finds_by_text, look_for
from descend.inference.player import Player
from descend.inference.sampler import Order, Sampler
from descend.inference.segmenter import Segmenter
from descend.inference.single_object_detector import SingleObjectDetector
from descend.inference.table_predictor import TablePredictor
from descend.inference.tagger import Tagger
from descend.inference.text_classifier import SentenceClassifier
from descend.inference.trained import Trained
from descend.inference.translator import Translator
from descend.inference.writer import Writer
from descend.models._owl import OwlDetector
from descend.models.clip import Joint
from descend.report.sheet import to_bytes
from descend.server import families as f
from descend.server.forms import Form

Answers = list[dict[str, Any]]


@dataclass(frozen=True)
class Family:
    """What a run is asked, what it answers, and how."""

    form: type[Form]
    answer: type[BaseModel]
    ask: Callable[[Any], Answers]
    narrow: Mapping[str, Any] = field(default_factory=dict)
    """What this run wants of each item of a field: the columns of a record, the numbers of an observation."""
    labels: tuple[str, ...] = ()

    def describe(self, name: str) -> dict[str, Any]:
        """JSON schemas of the request and of each answer, and the classes that there are."""
        request = self.form.model_json_schema()
        request["properties"]["model"]["const"] = name
        for key, items in self.narrow.items():
            request["properties"][key]["items"] = items
        return {"model": name, "request": request, "answer": self.answer.model_json_schema(), "labels": self.labels}


# Inputs and outputs


@contextmanager
def hold_files() -> Iterator[Path]:
    """A folder for the inputs; messages name what is in it without the path."""
    with tempfile.TemporaryDirectory(prefix="descend-") as folder:
        try:
            yield Path(folder)
        except Mistake as mistake:
            raise Mistake(str(mistake).replace(f"{folder}/", "")) from None


def write_images(folder: Path, images: Sequence[str]) -> list[str]:
    """Images as files; what they hold is found out when they are opened."""
    names = []
    for i, text in enumerate(images):
        data = text.partition(",")[2] if text.startswith("data:") else text
        path = folder / f"image-{i}"
        try:
            path.write_bytes(base64.b64decode(data, validate=True))
        except (binascii.Error, ValueError):
            raise Mistake(f"image {i} is not base64; encode the bytes of the file") from None
        names.append(str(path))
    return names


def encode_png(pixels: np.ndarray) -> str:
    """(h, w) or (h, w, 3) of 0..255 as PNG in base64."""
    from PIL import Image

    page = io.BytesIO()
    Image.fromarray(pixels).save(page, format="PNG")
    return base64.b64encode(page.getvalue()).decode()


def show_image(x: Tensor) -> str:
    """(c, h, w) in 0..1"""
    return encode_png(to_bytes(x.clamp(0, 1)))


def name_inputs(answers: Answers) -> Answers:
    """Files by their name alone."""
    return [{**answer, "input": Path(answer["input"]).name} for answer in answers]


# One function for each family


def ask_images(answerer: ImageClassifier | SingleObjectDetector, form: f.AskImages | f.AskCaptions) -> Answers:
    with hold_files() as folder:
        found = answerer.predict(write_images(folder, form.images))
        return name_inputs([answer.as_json(form.top) for answer in found])


def ask_objects(detector: Detector, form: f.AskObjects) -> Answers:
    with hold_files() as folder:
        found = detector.above(form.threshold).predict(write_images(folder, form.images))
        return name_inputs([answer.as_json(1) for answer in found])


def ask_masks(segmenter: Segmenter, form: f.AskMasks) -> Answers:
    with hold_files() as folder:
        names = write_images(folder, form.images)
        masks = segmenter.segment(names)
    labels, answers = segmenter.labels, []
    for name, mask in zip(names, masks, strict=True):
        shares = mask.flatten().bincount(minlength=len(labels)).double() / mask.numel()
        told = {"labels": list(labels), "shares": dict(zip(labels, shares.tolist(), strict=True))}
        kind = np.uint8 if len(labels) <= 256 else np.uint16
        answers.append({"input": Path(name).name, "mask": encode_png(mask.numpy().astype(kind)), **told})
    return answers


def ask_translation(translator: Translator, form: f.AskTranslation) -> Answers:
    with hold_files() as folder:
        made = translator.translate(write_images(folder, form.images), form.back)
    return [{"index": i, "image": show_image(x)} for i, x in enumerate(made)]


def ask_texts(answerer: Any, form: f.AskTexts) -> Answers:
    found = answerer.predict([PlainText(text) for text in form.texts])
    return [answer.as_json(form.top) for answer in found]


def ask_records(predictor: TablePredictor, form: f.AskRecords) -> Answers:
    with hold_files() as folder:
        path = folder / "records.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in form.records), encoding="utf-8")
        found = predictor.predict([str(path)])
    return [
        {"record": i, "prediction": answer.prediction, "probability": answer.probability}
        for i, answer in enumerate(found)
    ]


def write_graph(path: Path, graph: f.Graph) -> str:
    path.write_text(graph.model_dump_json(exclude_none=True), encoding="utf-8")
    return str(path)


def ask_nodes(answerer: NodeClassifier | LinkPredictor, form: f.AskGraphs) -> Answers:
    """Graph by graph."""
    if isinstance(answerer, LinkPredictor):
        answerer = answerer.best(form.top)
    answers: Answers = []
    with hold_files() as folder:
        for i, graph in enumerate(form.graphs):
            found = answerer.predict([write_graph(folder / f"graph-{i}.json", graph)])
            answers += [{"graph": i, **answer.as_json(1)} for answer in found]
    return answers


def ask_graphs(answerer: GraphPredictor, form: f.AskGraphs) -> Answers:
    with hold_files() as folder:
        names = [write_graph(folder / f"graph-{i}.json", graph) for i, graph in enumerate(form.graphs)]
        found = answerer.predict(names)
    return [{"graph": i, "values": dict(answer.values)} for i, answer in enumerate(found)]


def ask_samples(sampler: Sampler, form: f.AskSamples) -> Answers:
    order = Order(form.steps, form.guidance, form.method, form.label, form.prompt)
    made = sampler.sample(form.count, form.seed, order)
    if made.dim() == 4:
        return [{"index": i, "image": show_image(x)} for i, x in enumerate(made)]
    return [{"index": i, "values": x} for i, x in enumerate(made.flatten(1).tolist())]


def ask_actions(player: Player, form: f.AskActions) -> Answers:
    wanted = player.trained.model.config.observations
    for i, row in enumerate(form.observations):
        if len(row) != wanted:
            raise Mistake(f"observation {i} has {len(row)} numbers, but this policy sees {wanted}; give so many")
    actions = player.act(torch.tensor(form.observations)).tolist()
    return [{"action": action} for action in actions]


def ask_captions(trained: Trained, form: f.AskCaptions) -> Answers:
    return ask_images(choose_among(trained, form.labels), form)


def ask_named_objects(trained: Trained, form: f.AskNamedObjects) -> Answers:
    return ask_objects(look_for(trained, form.labels), form)


# Which of them


def asks_for_names(trained: Trained) -> Family | None:
    """The family of a model that is told with each request what to look for."""
    if isinstance(trained.model, Joint):
        return Family(f.AskCaptions, f.Classes, lambda form: ask_captions(trained, form))
    if finds_by_text(trained) and isinstance(trained.model, OwlDetector):
        return Family(f.AskNamedObjects, f.Objects, lambda form: ask_named_objects(trained, form))
    return None


def choose_family(answerer: Any, run: str) -> Family:
    """The family of everything else."""
    made: type[BaseModel] = f.SampleMade
    if isinstance(answerer, Sampler):
        made = f.ImageMade if answerer.prepare else f.PointMade if answerer.scale else f.SampleMade
    kinds: list[tuple[Any, type[Form], type[BaseModel], Callable[[Any, Any], Answers]]] = [
        (ImageClassifier | SingleObjectDetector, f.AskImages, f.Classes, ask_images),
        (Detector, f.AskObjects, f.Objects, ask_objects),
        (Segmenter, f.AskMasks, f.Mask, ask_masks),
        (Translator, f.AskTranslation, f.ImageMade, ask_translation),
        (TablePredictor, f.AskRecords, f.RecordAnswer, ask_records),
        (NodeClassifier, f.AskGraphs, f.NodeClass, ask_nodes),
        (LinkPredictor, f.AskGraphs, f.NewLink, ask_nodes),
        (GraphPredictor, f.AskGraphs, f.GraphValues, ask_graphs),
        (Sampler, f.AskSamples, made, ask_samples),
        (Player, f.AskActions, f.Action, ask_actions),
        (Tagger, f.AskTexts, f.Tags, ask_texts),
        (Writer, f.AskTexts, f.TextAnswer, ask_texts),
    ]
    for kind, form, answer, ask in kinds:
        if isinstance(answerer, kind):
            labels = answerer.labels if isinstance(answerer, LABELLED) else ()
            return Family(form, answer, functools.partial(ask, answerer), narrow_items(answerer), tuple(labels))
    if answerer.takes == "instructions":
        raise Mistake(f"{run} moves a simulated arm, which a server does not have; use: descend act {run}")
    labels = answerer.labels if isinstance(answerer, SentenceClassifier) else ()
    return Family(f.AskTexts, f.Classes, functools.partial(ask_texts, answerer), labels=tuple(labels))


LABELLED = ImageClassifier | SingleObjectDetector | Detector | Segmenter | TablePredictor | NodeClassifier | Tagger


def narrow_items(answerer: Any) -> dict[str, Any]:
    """What a record or an observation of this run is."""
    if isinstance(answerer, Player):
        count = answerer.trained.model.config.observations
        return {"observations": {"type": "array", "items": {"type": "number"}, "minItems": count, "maxItems": count}}
    if not isinstance(answerer, TablePredictor):
        return {}
    columns = answerer.columns.columns
    plain, date = ["number", "boolean", "string", "null"], ["string", "null"]
    known: dict[str, Any] = {c.name: {"type": plain} for c in columns if isinstance(c, Quantity)}
    known |= {c.name: {"type": plain, "examples": list(c.values)} for c in columns if isinstance(c, Category)}
    known |= {c.name: {"type": date, "format": "date"} for c in columns if isinstance(c, Moment)}
    return {"records": {"type": "object", "properties": known, "required": list(known)}}
