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


def model_class(name: str, architecture: str = "") -> type[Pretrained]:
    """The model class of a file: the one subclass of Pretrained that it defines.

    A file with several heads lists them in ARCHITECTURES; without a name it is the one that LAYOUT names.
    """
    file = import_module(f"{__name__}.{name}")
    heads: dict[str, type[Pretrained]] = getattr(file, "ARCHITECTURES", {})
    if heads and architecture not in ("", *heads):
        raise Mistake(f"{architecture!r} is not known.{nearest(architecture, heads)} Known: {', '.join(heads)}")
    if heads:
        return heads[architecture or file.LAYOUT.architecture]
    classes = [c for c in vars(file).values() if isinstance(c, type) and c.__module__ == file.__name__]
    return next(c for c in classes if issubclass(c, Pretrained))


def with_head(config: object, head: str) -> Pretrained:
    """A new model of the config's family with another head: with_head(BertConfig(), "ForTokenClassification")."""
    name = type(config).__module__.rpartition(".")[2]
    heads: dict[str, type[Pretrained]] = getattr(import_module(f"{__name__}.{name}"), "ARCHITECTURES", {})
    for architecture, kind in heads.items():
        if architecture.endswith(head):
            return kind(config)
    raise Mistake(f"{name} has no head {head!r}; choose a family that has one, such as bert")


def model_folder(folder: str | Path) -> Path:
    """A model folder itself, or the last checkpoint of a run's folder."""
    folder = Path(folder)
    if (folder / "checkpoints" / "last").is_dir():
        folder = folder / "checkpoints" / "last"
    if not folder.is_dir():
        raise Mistake(f"{folder} is not a folder; give a model folder or a run folder")
    return folder


def load(folder: str | Path) -> Pretrained:
    """The model in a Hugging Face folder or in a run of descend (its last checkpoint), in evaluation mode."""
    folder = model_folder(folder)
    values = read_json(folder / "config.json")
    name = str(values.get("model_type", "")).replace("-", "_")
    if name not in names():
        known = ", ".join(names())
        raise Mistake(
            f"{folder / 'config.json'}: model_type {name!r} is unknown.{nearest(name, names())} Known: {known}"
        )
    try:
        kind = model_class(name, *(values.get("architectures") or [])[:1])
    except Mistake as error:
        raise Mistake(f"{folder / 'config.json'}: architecture {error}") from None
    return kind.from_pretrained(folder)
