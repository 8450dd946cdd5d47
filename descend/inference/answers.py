"""What a trained model says of things it has not seen: pictures, texts, tables. Used by `descend predict`.

The folder tells the kind: preprocessor_config.json (pictures), tokenizer.json (texts), columns.json (tables). A CLIP
has no classes of its own: the user names them, and the picture belongs to the nearest text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from descend.data.images.captions import caption_tokens
from descend.data.images.files import SUFFIXES, cores, listed
from descend.data.images.labelled import PREPROCESSOR, Preprocessing
from descend.data.tables.columns import FILE as COLUMNS
from descend.errors import Mistake
from descend.kinds.sentiment import classify
from descend.kinds.start_from import best_folder
from descend.models import load
from descend.models.clip import Joint
from descend.models.localiser import Located
from descend.models.text_classifier import TextClassifier
from descend.tasks.fine_tune import read
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer

BATCH = 64  # inputs that run through the model together
READS = "ForSequenceClassification"  # how the heads that classify texts are called


@dataclass(frozen=True)
class Answer:
    """What was asked, the classes by probability, the likeliest first, and where the object is, if it says so."""

    input: str
    classes: tuple[tuple[str, float], ...]
    box: tuple[float, ...] = ()

    def shortened(self, top: int) -> dict[str, Any]:
        """As JSON, with the `top` likeliest classes."""
        answers = [{"label": label, "probability": p} for label, p in self.classes[:top]]
        return {"input": self.input, "answers": answers} | ({"box": list(self.box)} if self.box else {})


@dataclass(frozen=True)
class Seen:
    """Pictures as the model saw them: standardized x, pixels in 0..1 (n, c, h, w), its logits, and boxes (n, 4) of a
    localiser, as shares of the picture's width and height."""

    x: Tensor
    pixels: Tensor
    logits: Tensor
    boxes: Tensor | None = None


class ByText(nn.Module):
    """A CLIP as a classifier of pictures: x (n, c, h, w) -> e^s cos(I, T_c) (n, C)"""

    def __init__(self, model: Joint, texts: Tensor):
        super().__init__()
        self.model, self.config = model, model.config
        self.register_buffer("texts", texts)

    def forward(self, x: Tensor) -> Tensor:
        return self.model.logits(self.model.encode_image(x), cast("Tensor", self.texts))


@dataclass(frozen=True)
class Trained:
    """A model, the folder it was read from, and what it takes: pictures, texts or a table."""

    model: Any
    folder: Path
    takes: str
    labels: tuple[str, ...] = ()

    @classmethod
    def open(cls, run: str | Path, labels: Sequence[str] = ()) -> Trained:
        """The best checkpoint of a run, or a model folder; labels are the classes that a CLIP is asked about."""
        folder = best_folder(run)
        model = load(folder)
        if isinstance(model, Joint):
            return cls.by_text(model, folder, labels)
        if labels:
            raise Mistake(f"--labels are for a CLIP, but {run} holds a {type(model).__name__}, which has its own")
        if (folder / COLUMNS).exists():
            return cls(model, folder, "table")
        if (folder / PREPROCESSOR).exists():
            return cls(model, folder, "pictures")
        if isinstance(model, TextClassifier) or type(model).__name__.endswith(READS):
            return cls(model, folder, "texts")
        hint = "; is it a language model? Use descend generate" if (folder / "tokenizer.json").exists() else ""
        raise Mistake(
            f"{run} holds a {type(model).__name__}, which classifies neither pictures, texts nor tables{hint}"
        )

    @classmethod
    def by_text(cls, model: Joint, folder: Path, labels: Sequence[str]) -> Trained:
        """A CLIP with the classes that were named."""
        if not labels:
            raise Mistake(f'{folder} holds a CLIP, which has no classes; name some: --labels "a red circle, a ring"')
        tokens = caption_tokens(Tokenizer.load(folder), labels, model.config.text.context)
        with torch.no_grad():
            return cls(ByText(model, model.encode_text(tokens)).eval(), folder, "pictures", tuple(labels))


def picture_paths(inputs: list[str]) -> list[Path]:
    """Files, the pictures of folders, and patterns such as "photos/*.jpg", in the order given."""
    found: list[Path] = []
    for given in inputs:
        path = Path(given)
        if path.is_dir():
            inside, _ = listed(path)
            if not inside:
                raise Mistake(f"{path} holds no pictures ({', '.join(sorted(SUFFIXES))})")
            found += inside
        elif path.exists():
            found.append(path)
        else:
            matches = sorted(Path(name) for name in glob(given, recursive=True))
            if not matches:
                raise Mistake(f"{given} does not exist; give picture files, folders or a pattern in quotes")
            found += [match for match in matches if match.is_file()]
    return found


@torch.no_grad()
def see(trained: Trained, paths: list[Path]) -> Seen:
    """Decode the pictures as training did, and run the model over them in batches."""
    prepare, where = Preprocessing.read(trained.folder), next(trained.model.parameters()).device
    x = torch.cat([prepare.files(paths[i : i + BATCH], cores()) for i in range(0, len(paths), BATCH)])
    found = [trained.model(part.to(where)) for part in x.split(BATCH)]
    boxes = torch.cat([z.box for z in found]).cpu() if isinstance(found[0], Located) else None
    found = [z.logits if isinstance(z, Located) else z for z in found]
    if not all(isinstance(z, Tensor) and z.dim() in (2, 4) for z in found):
        raise Mistake(f"{trained.folder} holds a {type(trained.model).__name__}, which is no classifier of pictures")
    logits = torch.cat(found).cpu()
    mean, std = (torch.tensor(v)[:, None, None] for v in (prepare.mean, prepare.std))
    pixels = (x * std + mean).clamp(0, 1)
    return Seen(x, pixels.flip(1) if prepare.order == "bgr" else pixels, logits, boxes)


def picture_answers(trained: Trained, paths: list[Path], seen: Seen) -> list[Answer]:
    """Class probabilities of each picture; of a segmentation model the shares of the pixels."""
    z = seen.logits
    names = class_names(trained, z.shape[1])
    p = z.softmax(dim=1)
    if z.dim() == 4:
        p = torch.nn.functional.one_hot(z.argmax(dim=1), len(names)).float().mean(dim=(1, 2))
    found = ranked([str(path) for path in paths], p, names)
    if seen.boxes is None:
        return found
    return [replace(answer, box=tuple(box)) for answer, box in zip(found, seen.boxes.tolist(), strict=True)]


def class_names(trained: Trained, classes: int) -> tuple[str, ...]:
    """Those that were named, else from the preprocessing, else from the model's config, else numbers."""
    names: tuple[str, ...] = trained.labels or Preprocessing.read(trained.folder).labels
    if len(names) != classes:
        names = tuple(getattr(getattr(trained.model.config, "labels", None), "names", ()))
    return names if len(names) == classes else tuple(map(str, range(classes)))


def texts_of(inputs: list[str]) -> list[str]:
    """A .txt file has a text on each line, a .jsonl file a record with "text"; anything else is a text itself."""
    found: list[str] = []
    for given in inputs:
        path = Path(given)
        if path.suffix not in (".txt", ".jsonl"):
            found.append(given)
            continue
        if not path.is_file():
            raise Mistake(f"{given} does not exist; give a text, a .txt or a .jsonl file")
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        found += lines if path.suffix == ".txt" else [record_text(line, path, n) for n, line in enumerate(lines, 1)]
    if not found:
        raise Mistake(f"{inputs[0]} holds no text")
    return found


def record_text(line: str, path: Path, number: int) -> str:
    """The text of a JSONL record."""
    try:
        value = json.loads(line)["text"]
    except (json.JSONDecodeError, KeyError, TypeError):
        raise Mistake(f'{path}, line {number}: no record with "text"; write {{"text": "…"}}') from None
    return str(value)


@torch.no_grad()
def text_answers(trained: Trained, texts: list[str]) -> list[Answer]:
    """Class probabilities of each text."""
    if isinstance(trained.model, TextClassifier):
        found = classify(trained.folder, texts)
        p = torch.tensor([list(row.values()) for row in found])
        return ranked(texts, p, tuple(found[0]))
    inputs = Inputs.of(Tokenizer.load(trained.folder), trained.model.longest)
    encoded = [inputs.encode(text) for text in texts]
    rows = [
        read(trained.model, inputs.batch(encoded[i : i + BATCH])).softmax(dim=-1) for i in range(0, len(texts), BATCH)
    ]
    return ranked(texts, torch.cat(rows), trained.model.config.labels.names)


def ranked(inputs: list[str], p: Tensor, names: tuple[str, ...]) -> list[Answer]:
    """Probabilities (n, classes) as answers, the likeliest class first."""
    order = p.argsort(dim=1, descending=True, stable=True)
    return [
        Answer(given, tuple((names[k], float(row[k])) for k in best))
        for given, row, best in zip(inputs, p, order.tolist(), strict=True)
    ]
