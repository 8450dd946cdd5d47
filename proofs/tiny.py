"""The smallest run of every recipe: files of a few kilobytes, and the flags that make a recipe small.

A flag is given to every recipe that has it, so a new recipe of a known kind needs no line here.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

from descend import recipes
from descend.diagnosis.signs import flatten
from descend.kinds.saved import to_json

SENTENCES = (
    "the cat sat on the mat . ",
    "a dog ran over the hill . ",
    "we saw rain and wind . ",
    "nobody knows why . ",
)
CLASSES = ("cat", "dog", "owl")
EACH = 8  # images of a class
LOOP = {"steps": 2, "batch": 4, "eval_every": 1, "save_every": 1, "threads": 1, "compile": "off", "patience": 0}
FLAGS = {
    **LOOP,
    "data.scenes": 24,
    "data.images": 120,
    "data.episodes": 8,
    "swaps": 2,
    "data.graphs": 60,
    "data.side": 32,
    "data.vocab": 300,
    "data.longest": 24,
    "data.least": 1,
    "data.length": 8,
    "data.copies": 2,
    "data.capacity": 64,
    "explore.warmup": 8,
    "explore.steps": 16,
    "model.context": 16,
    "longest": 6,
    "schedule.warmup": 1,
    "growing.stay": 1,
    "growing.fade": 1,
    "plan.steps": 2,
    "model.plan.steps": 2,
    "model.steps": 2,
    "data.count": 120,
    "known": 60,
}
PLAYED = {"data.valid": 2, "data.test": 2}  # episodes or points, where the flag is a count and not a share
FILES = {
    "Text": "text.txt",
    "NearWords": "text.txt",
    "ImageSource": "images",
    "Digits": "images",
    "FewImages": "images",
    "LabelledText": "labels.tsv",
    "Opinions": "labels.tsv",
    "TaggedText": "tags.txt",
    "TextPairs": "pairs.tsv",
    "Captions": "captions.csv",
    "Conversations": "chats.jsonl",
    "Preferences": "opinions.jsonl",
    "QueryDocuments": "queries.tsv",
}  # the class of a recipe's data -> what is at --data.path; others make their own
MIXED = ("text.txt", "pairs.tsv")


def write_files(folder: Path) -> Path:
    """The files that tiny runs learn from and are asked about."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(SENTENCES[(i * i + i // 3) % 4] for i in range(200))
    (folder / "text.txt").write_text(text, encoding="utf-8")
    rows = [(SENTENCES[i % 4].strip(), CLASSES[i % 3]) for i in range(48)]
    (folder / "labels.tsv").write_text("".join(f"{text} {i}\t{y}\n" for i, (text, y) in enumerate(rows)))
    (folder / "pairs.tsv").write_text("".join(f"{text} {i}\t{text.upper()}\n" for i, (text, _) in enumerate(rows)))
    (folder / "queries.tsv").write_text("".join(f"{i} {y}\t{i} {text} {y}\n" for i, (text, y) in enumerate(rows)))
    chats = [{"prompt": f"{text.split()[0]} {i} ", "completion": f"{y} {i}"} for i, (text, y) in enumerate(rows)]
    (folder / "chats.jsonl").write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    pairs = [{"prompt": f"{y} {i}", "chosen": " yes", "rejected": " no"} for i, (_, y) in enumerate(rows)]
    (folder / "opinions.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    words = [[f"{word} {'NOUN' if word in CLASSES else 'O'}" for word in text.split()] for text, _ in rows]
    (folder / "tags.txt").write_text("\n\n".join("\n".join(lines) for lines in words) + "\n")
    numbers = np.random.default_rng(0).normal(size=(40, 2)).round(3)
    lines = [f"{a},{b},{CLASSES[int(a > 0)]}" for a, b in numbers]
    (folder / "table.csv").write_text("\n".join(["a,b,target", *lines]) + "\n")
    write_images(folder / "images", CLASSES, EACH)
    listed = [f"images/{name}/{k}.png,a photo of a {name}" for name in CLASSES for k in range(EACH)]
    (folder / "captions.csv").write_text("\n".join(["image,caption", *listed]) + "\n")
    return folder


def write_images(root: Path, classes: tuple[str, ...], each: int, side: int = 16) -> Path:
    """root/CLASS/k.png: random colours, the same each time."""
    for c, name in enumerate(classes):
        (root / name).mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(c).integers(0, 256, (each, side, side, 3), dtype=np.uint8)
        for k, image in enumerate(pixels):
            Image.fromarray(image).save(root / name / f"{k}.png")
    return root


def shrink_flags(name: str, files: Path) -> list[str]:
    """The flags that make a recipe tiny."""
    recipe = recipes.get(name)
    values = flatten(to_json(recipe))
    wanted = {flag: value for flag, value in FLAGS.items() if type(values.get(flag)) is type(value)}
    wanted |= {flag: value for flag, value in PLAYED.items() if isinstance(values.get(flag), int)}
    if "growing.stay" in wanted:  # every stage is reached
        wanted["steps"] = 12
    if not recipe.loop.batch:  # all of them, as a full-batch optimizer wants
        wanted["batch"] = 0
    if path := FILES.get(type(recipe.data).__name__):
        wanted["data.path"] = files / path
    found = [word for flag, value in wanted.items() for word in (f"--{flag.replace('_', '-')}", str(value))]
    more = ["--data.sources", *(str(files / name) for name in MIXED)] if "data.sources" in values else []
    return [*found, *more]


def list_kinds() -> dict[str, list[str]]:
    """The recipes by their kind."""
    found: dict[str, list[str]] = {}
    for name in recipes.names():
        found.setdefault(type(recipes.get(name)).__name__, []).append(name)
    return found
