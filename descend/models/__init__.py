"""Models, flat: one family a file, named as config.json names it (`model_type`)."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from descend.errors import Mistake, nearest
from descend.weights.layout import read_json
from descend.weights.pretrained import Pretrained


def names() -> list[str]:
    """Every model family: the files of this folder."""
    return sorted(p.stem for p in Path(__file__).parent.glob("*.py") if not p.stem.startswith("_"))


def model_class(name: str) -> type[Pretrained]:
    """The model class of a file: the one subclass of Pretrained that it defines."""
    file = import_module(f"{__name__}.{name}")
    classes = [c for c in vars(file).values() if isinstance(c, type) and c.__module__ == file.__name__]
    return next(c for c in classes if issubclass(c, Pretrained))


def load(folder: str | Path) -> Pretrained:
    """The model in a Hugging Face folder or in a run of descend (its last checkpoint), in evaluation mode."""
    folder = Path(folder)
    if (folder / "checkpoints" / "last").is_dir():
        folder = folder / "checkpoints" / "last"
    if not folder.is_dir():
        raise Mistake(f"{folder} is not a folder; give a model folder or a run folder")
    name = str(read_json(folder / "config.json").get("model_type", "")).replace("-", "_")
    if name not in names():
        known = ", ".join(names())
        raise Mistake(
            f"{folder / 'config.json'}: model_type {name!r} is unknown.{nearest(name, names())} Known: {known}"
        )
    return model_class(name).from_pretrained(folder)
