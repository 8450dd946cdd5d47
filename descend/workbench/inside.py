"""A run's network at any of its checkpoints: what its family shows, its layers, and the user's own input.

The parts of a run are built once; a slider over training time then only exchanges the weights.
"""

from __future__ import annotations

import base64
import binascii
import threading
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.inference import open_trained
from descend.inference.image_classifier import ImageClassifier
from descend.inference.trained import load_trained
from descend.inference.writer import Writer
from descend.interpret.layers import list_convolutions
from descend.interpret.overlay import overlay_heat
from descend.kinds.saved import read_saved
from descend.nn.attention.maps import attention_maps
from descend.report.exhibits import make_section
from descend.report.history import read_history
from descend.report.showing import build_parts, make_exhibits, take_weights
from descend.views.attempts import show_each
from descend.views.images import find_heat, show_feature_maps
from descend.views.pixels import channels_last
from descend.views.text import show_attention, show_lens, show_probabilities
from descend.web.chart import Series, draw_choices, name_series
from descend.web.markup import Html, html, join
from descend.web.parts import make_card, make_note, make_warning

LONGEST = 64  # tokens of an own text
KEPT = 40  # steps whose pictures are kept
NOTHING = make_note("This family shows nothing of itself yet; its layers are below.")
LOCK = threading.Lock()
DRAWN: dict[tuple[str, int], Html] = {}
BUILT: dict[str, Parts] = {}  # of the run that was looked at last


def draw_inside(run: Path, step: int) -> Html:
    """What the family shows with the weights of a step."""
    folder = find_step(run, step)
    key = str(folder), folder.stat().st_mtime_ns
    with LOCK:
        if key not in DRAWN:
            found = make_exhibits(build(run), run, folder)
            DRAWN[key] = html('<div class="exhibits">{}</div>', [make_section(one) for one in found] or [NOTHING])
            while len(DRAWN) > KEPT:
                DRAWN.pop(next(iter(DRAWN)))
        return DRAWN[key]


def build(run: Path) -> Parts:
    """The parts of a run: kept until another run is looked at."""
    key = str(run)
    if key not in BUILT:
        BUILT.clear()
        _, recipe, _ = read_saved(read_history(run).recipe, run / "recipe.json")
        BUILT[key] = build_parts(recipe)
        BUILT[key].task.to("cpu")
    return BUILT[key]


def find_step(run: Path, step: int) -> Path:
    named = (run / "checkpoints").glob("step-*")
    found = [one for one in named if one.name[5:].isdigit() and int(one.name[5:]) == step]
    if not found:
        raise Mistake(f"{run.name} has no checkpoint of step {step:,} any more")
    return found[0]


def draw_layers(run: Path, step: int) -> Html:
    """Weights, activations and gradients of every layer on one training batch."""
    with LOCK:
        parts = build(run)
        take_weights(parts, find_step(run, step))
        rows = measure_layers(parts)
    if not rows:
        return make_note("No layer with weights was reached by a training batch.")
    places = tuple(short(row.name) for row in rows)
    at = [float(k) for k in range(len(rows))]
    cards = []
    for title, note, column in COLUMNS:
        series = [
            Series(label, at, [row.measured[k] for row in rows], "points", colour)
            for colour, (label, k) in enumerate(column.items())
        ]
        chart = draw_choices(series, places, (1000, 260), ("layer", ""))
        cards.append(make_card(title, name_series(series) if len(series) > 1 else None, chart, note=note))
    return join(cards)


class Layer(NamedTuple):
    """A layer, and its mean, deviation, log₁₀ of the gradient, and weight."""

    name: str
    measured: tuple[float, float, float, float]


COLUMNS: tuple[tuple[str, str, dict[str, int]], ...] = (
    ("Activations", "Mean and standard deviation of what each layer puts out.", {"mean": 0, "standard deviation": 1}),
    ("Gradients", "log₁₀ of the root mean square of the gradient of each layer's weights.", {"gradient": 2}),
    ("Weights", "Root mean square of each layer's weights.", {"weights": 3}),
)


def short(name: str, longest: int = 14) -> str:
    return name if len(name) <= longest else "…" + name[1 - longest :]


def measure_layers(parts: Parts) -> list[Layer]:
    """The layers with a matrix, in the order in which they run."""
    seen: dict[str, tuple[float, float]] = {}

    def watch(name: str) -> Callable[[Any, Any, Any], None]:
        def note(_: Any, __: Any, out: Any) -> None:
            value = out[0] if isinstance(out, tuple) and out else out
            if isinstance(value, Tensor) and value.is_floating_point() and name not in seen:
                x = value.detach().float()
                seen[name] = float(x.mean()), float(x.std()) if x.numel() > 1 else 0.0

        return note

    modules = dict(parts.task.named_modules())
    matrices = {name: [p for p in one.parameters(recurse=False) if p.dim() > 1] for name, one in modules.items()}
    hooks = [modules[name].register_forward_hook(watch(name)) for name, found in matrices.items() if found]
    try:
        parts.task.train()
        parts.task.zero_grad(set_to_none=True)
        batch = next(parts.stream)
        next(iter(parts.task.moves(batch))).value().total().backward()
    finally:
        for hook in hooks:
            hook.remove()
        parts.task.eval()
    rows = []
    for name, (mean, deviation) in seen.items():
        gradients = [p.grad.flatten() for p in matrices[name] if p.grad is not None]
        size = float(torch.cat(gradients).float().square().mean().sqrt()) if gradients else 0.0
        weight = float(torch.cat([p.detach().flatten() for p in matrices[name]]).float().square().mean().sqrt())
        log = float(torch.tensor(size).clamp_min(1e-12).log10()) if gradients else float("nan")
        rows.append(Layer(name.partition(".")[2] or name, (mean, deviation, log, weight)))
    parts.task.zero_grad(set_to_none=True)
    return rows


def draw_own(run: Path, step: int, text: str, image: str) -> Html:
    """What the network does with a text or an image of the user's own."""
    trained = load_trained(str(run), step)
    answerer: Any = open_trained(trained, str(run))
    if isinstance(answerer, ImageClassifier):
        if not image:
            raise Mistake("drop an image: this model reads images")
        return join(make_section(one) for one in look_at_image(answerer, image))
    if isinstance(answerer, Writer) and answerer.continues:
        if not text.strip():
            raise Mistake("write a text: this model reads texts")
        return join(make_section(one) for one in look_at_text(answerer, text))
    return make_warning(f"A {trained.kind} cannot be looked into with an own input yet; its exhibits are above.")


def look_at_image(classifier: ImageClassifier, image: str) -> list[Exhibit]:
    """The classes, the heat of the most likely one, and the strongest feature maps."""
    from PIL import Image, UnidentifiedImageError

    try:
        data = base64.b64decode(image.partition(",")[2], validate=True)
        picture = Image.open(BytesIO(data)).convert("RGB")
    except (binascii.Error, ValueError, UnidentifiedImageError, OSError):
        raise Mistake("this is no image that can be read") from None
    pixels = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8)
    pixels = pixels.view(picture.height, picture.width, 3).permute(2, 0, 1)[None].float() / 255
    channels = classifier.images.prepare.image[0]
    x = classifier.images.read_images(pixels if channels == 3 else pixels.mean(1, keepdim=True))
    model = classifier.model

    def show_heat() -> Exhibit:
        heat, how = find_heat(model, x)
        restored = classifier.images.prepare.restore(x).clamp(0, 1)
        plain = restored.expand(-1, 3, -1, -1)
        both = torch.cat([plain, overlay_heat(restored, heat)])
        answer = classifier.classify(pixels if channels == 3 else pixels.mean(1, keepdim=True))[0]
        label, share = answer.classes[0]
        content = {"images": channels_last(both), "captions": ["as the model sees it", f"{label} ({share:.0%})"]}
        return Exhibit("images", "Where the evidence lies", content, f"Red counts most ({how}).")

    makers: dict[str, Callable[[], Exhibit | list[Exhibit]]] = {"Where the evidence lies": show_heat}
    if list_convolutions(model):
        makers["Feature maps"] = lambda: show_feature_maps(model, x)
    patches = [str(k) for k in range(LONGEST)]
    if maps := attention_maps(model, x):
        size = next(iter(maps.values())).shape[-1]
        if size <= LONGEST:
            makers["Attention maps"] = lambda: show_attention(model, patches[:size], x)
    return show_each(makers)


def look_at_text(writer: Writer, text: str) -> list[Exhibit]:
    """Attention of every head, the logit lens, and how likely each token was."""
    model, tokenizer = writer.trained.model, writer.tokenizer
    room = min(LONGEST, model.config.context)
    tokens = torch.tensor([tokenizer.encode(text)[:room]])
    names = [tokenizer.decode([token]) for token in tokens[0].tolist()]
    makers: dict[str, Callable[[], Exhibit | list[Exhibit]]] = {
        "Attention maps": lambda: show_attention(model, names, tokens),
        "Logit lens": lambda: show_lens(model, tokenizer, tokens),
    }
    if len(names) > 1:
        makers["Token probabilities"] = lambda: show_probabilities(model, tokenizer, tokens[0])
    return show_each(makers)
