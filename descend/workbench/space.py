"""What a model makes of many inputs at once: their vectors as a map, and the ones nearest to a text or an image.

    cos(x_i, q) = x_i · q / |x_i| |q|

The inputs are the validation data of the run, the images of a folder, or texts, a line each; of a table of word vectors
its own most frequent words.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import interpolate, normalize

from descend.data.images.captions import pixels as captioned_pixels
from descend.errors import Mistake
from descend.inference.encoder import Encoder, encodes_images, encodes_texts
from descend.inference.images import ImageModel
from descend.inference.inputs import PlainText, list_images
from descend.inference.nearest_words import NearestWords, has_word_vectors
from descend.inference.trained import Trained, load_trained
from descend.kinds.saved import read_saved
from descend.models.clip import Joint
from descend.report.history import read_history
from descend.workbench.inside import LOCK, build
from descend.workbench.pictures import decode_image

MOST = 2000  # inputs that are embedded
THUMB = 64  # pixels of the longer side of a kept image
KEPT = 2  # spaces in memory


@dataclass(frozen=True)
class Given:
    """Which inputs: "data", "folder" or "texts"."""

    source: str
    path: str = ""
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Space:
    """Vectors x (n, d) of length 1; each input's name, its class ("" where none is known), and its image."""

    trained: Trained
    x: Tensor
    names: list[str]
    groups: list[str] = field(default_factory=list)
    images: Tensor | None = None
    """(n, c, h, w) in 0..1, small."""

    def find_near(self, query: Tensor, count: int) -> list[tuple[int, float]]:
        """The inputs of highest cosine with a vector (d), and it."""
        cosines = self.x @ normalize(query.float().cpu(), dim=0)
        best = cosines.topk(min(count, len(cosines)))
        return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))


OPENED: OrderedDict[tuple[str, int, Given], Space] = OrderedDict()


def say_vectors(trained: Trained) -> dict[str, bool]:
    """Of what a model gives vectors."""
    if has_word_vectors(trained):
        return {"words": True}
    found = {"images": encodes_images(trained), "texts": encodes_texts(trained)}
    return {name: there for name, there in found.items() if there}


def open_space(run: Path, step: int, given: Given) -> Space:
    """The vectors of these inputs, by the weights of a step."""
    key = str(run), step, given
    with LOCK:
        if key not in OPENED:
            OPENED[key] = make_space(load_trained(str(run), step), run, given)
            while len(OPENED) > KEPT:
                OPENED.popitem(last=False)
        OPENED.move_to_end(key)
        return OPENED[key]


def make_space(trained: Trained, run: Path, given: Given) -> Space:
    if has_word_vectors(trained):
        words = NearestWords.read(trained).words
        return Space(trained, unit(words.vectors[:MOST]), words.words[:MOST])
    encoder = Encoder(trained)
    if given.source == "texts" or not encodes_images(trained):
        texts = list(given.texts) if given.source == "texts" else read_run_texts(run)
        if not texts:
            raise Mistake("write some texts to search in, a line each")
        return Space(trained, unit(encoder.encode_texts(texts[:MOST])), texts[:MOST])
    reader = ImageModel.read(trained)
    if given.source == "folder":
        paths = list_images([given.path])[:MOST]
        x, names = reader.read_images(paths), [path.name for path in paths]
        groups = [path.parent.name if path.parent != Path(given.path) else "" for path in paths]
    else:
        x, names, groups = read_run_images(run, reader)
    forward = trained.model.encode_image if isinstance(trained.model, Joint) else trained.model.features
    vectors = torch.cat([found.flatten(1).cpu() for found in reader.run(x, forward)])
    return Space(trained, unit(vectors), names, groups if any(groups) else [], shrink(reader.prepare.restore(x)))


def unit(x: Tensor) -> Tensor:
    return normalize(x.float(), dim=1)


def shrink(images: Tensor) -> Tensor:
    """Images whose longer side has at most `THUMB` pixels."""
    scale = THUMB / max(images.shape[2:])
    if scale >= 1:
        return images.cpu()
    return interpolate(images, scale_factor=scale, mode="bilinear", antialias=True).clamp(0, 1).cpu()


def read_run_images(run: Path, reader: ImageModel) -> tuple[Tensor, list[str], list[str]]:
    """Validation images as the model reads them, their captions or numbers, and their classes."""
    labels: tuple[str, ...] = tuple(reader.prepare.labels)
    if isinstance(reader.trained.model, Joint):
        found = read_recipe(run).data.read()
        part, labels = found.valid, found.classes
        x, y, names = captioned_pixels(part.x[:MOST]), part.y, part.captions[:MOST]
    else:
        x, y = stack_batches(build(run).valid, reader.prepare.image)
        names = [f"image {i + 1}" for i in range(len(x))]
    if y is None:
        return x, names, []
    return x, names, [labels[k] if k < len(labels) else str(k) for k in y[: len(x)].tolist()]


def stack_batches(batches: Any, image: tuple[int, int, int]) -> tuple[Tensor, Tensor | None]:
    """Images x (n, c, h, w) and, where each has one, classes y (n) of validation batches."""
    seen: list[Tensor] = []
    classes: list[Tensor] = []
    for batch in batches:
        x, y = batch.get("x"), batch.get("y")
        if not isinstance(x, Tensor) or tuple(x.shape[1:]) != image:
            raise Mistake("the data of this run are not plain images; give a folder of images")
        seen.append(x)
        if isinstance(y, Tensor) and y.dim() == 1 and not y.is_floating_point():
            classes.append(y)
        if sum(map(len, seen)) >= MOST:
            break
    return torch.cat(seen)[:MOST], torch.cat(classes)[:MOST] if len(classes) == len(seen) else None


def read_run_texts(run: Path) -> list[str]:
    """The validation documents of a search, or the texts of a table."""
    found = read_recipe(run).data.read()
    if isinstance(found, dict) and found.get("valid") and hasattr(found["valid"][0], "document"):
        return [match.document for match in found["valid"]]
    raise Mistake("write some texts to search in, a line each: this run keeps none that could be shown")


def read_recipe(run: Path) -> Any:
    return read_saved(read_history(run).recipe, run / "recipe.json")[1]


def encode_query(space: Space, text: str, image: str) -> Tensor:
    """The vector of what is looked for."""
    trained = space.trained
    if has_word_vectors(trained):
        word = text.strip().lower()
        if word not in space.names:
            raise Mistake(f"{word!r} is not among the {len(space.names):,} most frequent words that the model knows")
        return space.x[space.names.index(word)]
    if image:
        reader = ImageModel.read(trained)
        return Encoder(trained).encode_images(decode_image(image, reader.prepare.image[0]))[0]
    if not text.strip():
        raise Mistake("write or drop what to look for")
    return Encoder(trained).encode_texts([PlainText(text.strip())])[0]
