"""Models, flat: one family per file, named as config.json names it (`model_type`)."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from descend.errors import Mistake, nearest
from descend.weights.checkpoints import resolve_checkpoint
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


def config_class(name: str) -> type:
    """The config of a model's file: the class of its TINY. `config_class("gpt2")()` imports no other model."""
    return type(import_module(f"{__name__}.{name}").TINY)


def make_model(config: object) -> Pretrained:
    """A new model, by the file that its config is from."""
    return model_class(type(config).__module__.rpartition(".")[2])(config)


def with_head(config: object, head: str) -> Pretrained:
    """A new model of the config's family with another head: with_head(BertConfig(), "ForTokenClassification")."""
    name = type(config).__module__.rpartition(".")[2]
    heads: dict[str, type[Pretrained]] = getattr(import_module(f"{__name__}.{name}"), "ARCHITECTURES", {})
    for architecture, kind in heads.items():
        if architecture.endswith(head):
            return kind(config)
    raise Mistake(f"{name} has no head {head!r}; choose a family that has one, such as bert")


def model_folder(folder: str | Path, checkpoint: str | int = "best") -> Path:
    """A model folder itself, or a checkpoint of a run's folder: best, last or a step."""
    return resolve_checkpoint(folder, checkpoint)


def load(folder: str | Path, checkpoint: str | int = "best") -> Pretrained:
    """The model in a Hugging Face folder or in a run of descend, in evaluation mode.

    Args:
        folder: a model folder (config.json, model.safetensors), or a run's folder.
        checkpoint: of a run: best, last or a step.
    """
    folder = model_folder(folder, checkpoint)
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
