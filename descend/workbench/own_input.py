"""What a network does with an image, a text or a row of the user's own, at one of its checkpoints.

image   feature maps, attention, where the evidence lies, the reconstruction of an autoencoder
text    attention of every head; of a language model the logit lens and how likely each token was
row     what every hidden unit answers, and the prediction while one column is changed and the others stay
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from descend.contracts import Exhibit
from descend.data.images.labelled import PREPROCESSOR
from descend.data.tables.columns import FILE as COLUMNS
from descend.data.tables.columns import Category, Columns, Quantity
from descend.data.tables.records import Records
from descend.errors import Mistake
from descend.inference import open_trained
from descend.inference.encoder import encodes_texts
from descend.inference.image_classifier import ImageClassifier
from descend.inference.images import ImageModel
from descend.inference.table_predictor import TablePredictor
from descend.inference.trained import Trained, load_trained
from descend.inference.writer import writes
from descend.interpret.layers import list_convolutions
from descend.interpret.overlay import overlay_heat
from descend.models.clip import Joint
from descend.nn.attention.maps import attention_maps
from descend.report.exhibits import make_section
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from descend.views.attempts import show_each
from descend.views.images import find_heat, show_feature_maps
from descend.views.pixels import channels_last
from descend.views.text import show_attention, show_lens, show_probabilities
from descend.web.markup import Html, html, join
from descend.web.parts import make_note
from descend.workbench.pictures import decode_image

LONGEST = 64  # tokens of a text, patches of an image
CURVES, POINTS, REACH = 8, 41, 2.5  # columns that are changed, values of each, and how many σ from the mean

Makers = dict[str, Callable[[], Exhibit | list[Exhibit]]]


def draw_form(run: Path, step: int) -> Html:
    """A field for what the model takes."""
    trained = load_trained(str(run), step)
    takes = find_input(trained)
    if takes == "image":
        return Html(
            '<p class="actions"><input type="file" accept="image/*" data-own="image" aria-label="own image"></p>'
        )
    if takes == "text":
        return Html('<textarea rows="2" data-own="text" placeholder="A text" aria-label="own text"></textarea>')
    if takes == "row":
        columns = Columns.read(trained.folder).columns
        return html('<div class="fields">{}</div>', [draw_field(column) for column in columns])
    return make_note(f"A {trained.kind} cannot be looked into with an input of your own; its exhibits are above.")


def draw_field(column: Any) -> Html:
    """A column, with a value that is common in it."""
    value = f"{column.mean:.4g}" if isinstance(column, Quantity) else ""
    value = column.values[0] if isinstance(column, Category) and column.values else value
    field = '<label class="field"><span>{}</span><input data-own="row" data-column="{}" value="{}"></label>'
    return html(field, column.name, column.name, value)


def find_input(trained: Trained) -> str:
    """image, text, row, or nothing."""
    if (trained.folder / PREPROCESSOR).exists():
        return "image"
    if (trained.folder / COLUMNS).exists():
        return "row"
    return "text" if writes(trained) or encodes_texts(trained) else ""


def draw_own(run: Path, step: int, text: str, image: str, row: Mapping[str, str]) -> Html:
    """What the network does with it."""
    trained = load_trained(str(run), step)
    takes = find_input(trained)
    if not {"image": image, "text": text.strip(), "row": row}.get(takes):
        raise Mistake({"image": "choose an image", "text": "write a text"}.get(takes, "this model takes no own input"))
    if takes == "image":
        found = look_at_image(trained, image)
    elif takes == "row":
        found = look_at_row(TablePredictor.read(trained), row)
    else:
        found = look_at_text(trained, text)
    return html('<div class="exhibits">{}</div>', join(make_section(one) for one in found))


def look_at_image(trained: Trained, image: str) -> list[Exhibit]:
    """The evidence for the most likely class, the reconstruction, feature maps and attention."""
    reader = ImageModel.read(trained)
    pixels = decode_image(image, reader.prepare.image[0])
    x, model = reader.read_images(pixels), trained.model
    shown = reader.prepare.restore(x).clamp(0, 1).expand(-1, 3, -1, -1)
    makers: Makers = {}
    try:
        answerer: Any = open_trained(trained, trained.folder)
    except Mistake:
        answerer = None  # it gives vectors, and no answer
    if isinstance(answerer, ImageClassifier):
        makers["Where the evidence lies"] = lambda: show_evidence(answerer, pixels, x, shown)
    if hasattr(model, "reconstruct"):
        makers["Reconstruction"] = lambda: show_reconstruction(model, reader, x, shown)
    network = find_network(model)
    if list_convolutions(network):
        makers["Feature maps"] = lambda: show_feature_maps(network, x)
    makers["Attention maps"] = lambda: show_patches(network, x)
    return show_each(makers)


def find_network(model: Any) -> Any:
    """The part that takes an image alone: of a CLIP and of an autoencoder with noise, that which encodes it."""
    if isinstance(model, Joint):
        return model.image
    needed = [p for p in inspect.signature(model.forward).parameters.values() if p.default is p.empty]
    return model.encoder if len(needed) > 1 and hasattr(model, "encoder") else model


def show_evidence(classifier: ImageClassifier, pixels: Tensor, x: Tensor, shown: Tensor) -> Exhibit:
    heat, how = find_heat(classifier.model, x)
    label, share = classifier.classify(pixels)[0].classes[0]
    both = torch.cat([shown, overlay_heat(classifier.images.prepare.restore(x).clamp(0, 1), heat)])
    content = {"images": channels_last(both), "captions": ["as the model sees it", f"{label} ({share:.0%})"]}
    return Exhibit("images", "Where the evidence lies", content, f"Red counts most ({how}).")


@torch.no_grad()
def show_reconstruction(model: Any, reader: ImageModel, x: Tensor, shown: Tensor) -> Exhibit:
    made = reader.prepare.restore(model.reconstruct(x)).clamp(0, 1).expand(-1, 3, -1, -1)
    content = {
        "images": channels_last(torch.cat([shown, made])),
        "captions": ["as the model sees it", "reconstruction"],
    }
    return Exhibit("images", "Reconstruction", content)


def show_patches(network: nn.Module, x: Tensor) -> list[Exhibit]:
    """Which patch looks at which; nothing without attention, or with more patches than can be shown."""
    maps = attention_maps(network, x)
    size = next(iter(maps.values())).shape[-1] if maps else LONGEST + 1
    return show_attention(network, [str(k) for k in range(size)], x) if size <= LONGEST else []


def look_at_text(trained: Trained, text: str) -> list[Exhibit]:
    """Attention of every head; of a language model the logit lens, and how likely each token was."""
    model, tokenizer = trained.model, Tokenizer.load(trained.folder)
    reads = not writes(trained)
    ids = Inputs.of(tokenizer, model.longest).encode(text).tokens if reads else tokenizer.encode(text)
    room = LONGEST if reads else min(LONGEST, model.config.context)
    tokens = torch.tensor([list(ids)[:room]])
    names = [tokenizer.decode([token]) for token in tokens[0].tolist()]
    makers: Makers = {"Attention maps": lambda: show_attention(model, names, tokens)}
    if not reads:
        makers["Logit lens"] = lambda: show_lens(model, tokenizer, tokens)
        if len(names) > 1:
            makers["Token probabilities"] = lambda: show_probabilities(model, tokenizer, tokens[0], "Your text")
    return show_each(makers)


def look_at_row(predictor: TablePredictor, row: Mapping[str, str]) -> list[Exhibit]:
    """What every unit answers, and what other values of a column would change."""
    makers: Makers = {"Units": lambda: show_units(predictor, row)}
    numbers = [column for column in predictor.columns.columns if isinstance(column, Quantity)][:CURVES]
    for column in numbers:
        makers[column.name] = lambda column=column: show_curve(predictor, row, column)  # type: ignore[misc]
    return show_each(makers)


def as_records(rows: list[Mapping[str, str]]) -> Records:
    names = list(rows[0])
    return Records({name: [row[name] for row in rows] for name in names}, list(range(1, len(rows) + 1)), "your row")


@torch.no_grad()
def show_units(predictor: TablePredictor, row: Mapping[str, str]) -> list[Exhibit]:
    """The outputs of each layer with weights, as a row of shades."""
    model, seen = predictor.trained.model, {}
    layers = {name: one for name, one in model.named_modules() if isinstance(one, nn.Linear)}
    hooks = [
        one.register_forward_hook(lambda _, __, out, name=name: seen.update({name: out[0]}))
        for name, one in layers.items()
    ]
    try:
        model(predictor.columns.encode(as_records([row])))
    finally:
        for hook in hooks:
            hook.remove()
    note = "What each unit of the layer puts out, before its activation; blue is positive, orange negative."
    hidden = list(seen.values())[:-1] or list(seen.values())  # the last one makes the answer
    return [
        Exhibit("heatmap", f"Units of layer {i}", {"values": [z.tolist()], "rows": [""], "column_label": "unit"}, note)
        for i, z in enumerate(hidden, 1)
    ]


def show_curve(predictor: TablePredictor, row: Mapping[str, str], column: Quantity) -> Exhibit:
    """The prediction while this column goes from −REACH to REACH standard deviations."""
    values = torch.linspace(column.mean - REACH * column.std, column.mean + REACH * column.std, POINTS).tolist()
    records = as_records([{**row, column.name: json.dumps(value)} for value in values])
    target = predictor.columns.target
    with torch.no_grad():
        z = predictor.trained.model(predictor.columns.encode(records))
    if target.labels:
        p = predictor.trained.probabilities(z)
        y = {label: p[:, k].tolist() for k, label in enumerate(target.labels)}
    else:
        y = {target.name: (target.mean + target.std * z[:, 0].double()).tolist()}
    said = "" if target.labels else target.name
    content = {"x": values, "y": y, "x_label": column.name, "y_label": said, "scale": "even"}
    what = "Probability of each class" if target.labels else "Prediction"
    return Exhibit("curve", f"{what}, by {column.name}", content, "Your other values stay as they are.")
