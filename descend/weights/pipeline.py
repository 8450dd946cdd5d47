"""A pipeline is a model: several networks, each in a folder of its own, and the plan by which they sample together.

    model_index.json            which class each part is; under _descend what only this library knows
    unet/, vae/, ..             a model folder each
    scheduler/                  scheduler_config.json: the plan
    tokenizer/                  files that go along

This is the layout of diffusers, which opens what is written here. A subclass names its parts in `kinds`: the name is
the folder's and the child module's. Its config has a field for the config of each part, `plan`, and its own settings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.files import field, field_or, read_json, write_json
from descend.ops.diffusion.plan import Plan
from descend.weights.companions import read_companions, write_companions
from descend.weights.folder import PARTS, SHARD_BYTES
from descend.weights.layout import DIFFUSERS, freeze_lists
from descend.weights.pretrained import Pretrained, layout_of
from descend.weights.schedulers import plan_to_json, read_scheduler, write_scheduler

OWN = "_descend"
"""In model_index.json: settings of this library; diffusers leaves out names that begin with a line."""
PLAN = ("steps", "eta")
"""What a scheduler's file has no place for."""
ALONG = ("tokenizer", "feature_extractor")
"""Folders without a network."""
LEFT_OUT = ("safety_checker", "requires_safety_checker", "image_encoder", *ALONG)


class Pipeline(Pretrained):
    """Several models in one folder. The child modules are the parts; `config` follows them."""

    kinds: ClassVar[Mapping[str, tuple[type[Pretrained], ...]]] = {}
    """Part -> the classes that it may be."""

    def __init__(self, config: Any):
        super().__init__()
        self.settings = config
        for name, kinds in self.kinds.items():
            part = getattr(config, name)
            kind = next((kind for kind in kinds if kind.Config is type(part)), None)
            if kind is None:
                known = " or ".join(kind.Config.__name__ for kind in kinds)
                raise ValueError(f"{name} is a {type(part).__name__}; it must be a {known}")
            setattr(self, name, kind(part))

    @property
    def config(self) -> Any:
        """The settings, with what the parts are now: a scale that was measured, channels that were added."""
        return dataclasses.replace(self.settings, **{name: getattr(self, name).config for name in self.kinds})

    @property
    def plan(self) -> Plan:
        plan: Plan = self.settings.plan
        return plan

    def set(self, name: str, value: Any) -> None:
        """Change one of the pipeline's own settings."""
        self.settings = dataclasses.replace(self.settings, **{name: value})

    def take_settings(self, config: Any) -> None:
        """Those of a saved pipeline with the same parts."""
        self.settings = config
        for name in self.kinds:
            getattr(self, name).config = getattr(config, name)

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """The pipeline saved in this folder, by descend or by diffusers, in evaluation mode."""
        folder = Path(folder)
        path = folder / PARTS
        values = read_json(path)
        check_parts(cls, values, path)
        parts = {name: read_part(folder / name, kinds) for name, kinds in cls.kinds.items()}
        own = field_or(values, OWN, dict, {}, path)
        settings: dict[str, Any] = {name: part.config for name, part in parts.items()}
        settings["plan"] = read_scheduler(folder / "scheduler")
        try:
            plan = {name: own[name] for name in PLAN if name in own}
            settings["plan"] = dataclasses.replace(settings["plan"], **plan)
            config = cls.Config(**settings, **{k: freeze_lists(v) for k, v in own.items() if k not in PLAN})
            with torch.device("meta"):
                model = cls(config)
        except (TypeError, ValueError) as error:
            raise Mistake(f"{path}: {error}") from None
        for name, part in parts.items():
            setattr(model, name, part)
        model.companions = read_companions(folder) | {
            f"{sub}/{name}": content for sub in ALONG for name, content in read_companions(folder / sub).items()
        }
        model.read_rest(folder)
        return model.eval()

    def read_rest(self, folder: Path) -> None:
        """What a subclass needs beside networks, such as a tokenizer."""

    def write_rest(self, folder: Path) -> dict[str, list[str]]:
        """The same the other way; returns library and class of what it wrote, by folder."""
        return {}

    def save_pretrained(
        self, folder: str | Path, shard_bytes: int = SHARD_BYTES, state: Mapping[str, Tensor] | None = None
    ) -> dict[str, dict[str, Tensor]]:
        """Write every part into its folder, so that `descend.load` and diffusers open the whole.

        Returns what each file of weights holds, by its path in the folder.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        state = self.state_dict() if state is None else state
        written: dict[str, dict[str, Tensor]] = {}
        named: dict[str, Any] = {}
        for name in self.kinds:
            part: Pretrained = getattr(self, name)
            its = {key.removeprefix(f"{name}."): tensor for key, tensor in state.items() if key.startswith(f"{name}.")}
            files = part.save_pretrained(folder / name, shard_bytes, its)
            written |= {f"{name}/{file}": tensors for file, tensors in files.items()}
            layout = layout_of(type(part))
            named[name] = [layout.library, layout.architecture]
        write_scheduler(folder / "scheduler", self.plan)
        named["scheduler"] = ["diffusers", plan_to_json(self.plan)["_class_name"]]
        own = {f.name: getattr(self.settings, f.name) for f in dataclasses.fields(self.settings)}
        own = {k: v for k, v in own.items() if k not in (*self.kinds, "plan")}
        own |= {name: getattr(self.plan, name) for name in PLAN}
        head = {"_class_name": layout_of(type(self)).architecture, "_diffusers_version": DIFFUSERS, OWN: own}
        write_json(folder / PARTS, head | named | self.write_rest(folder))
        write_companions(folder, self.companions)
        return written


def read_part(folder: Path, kinds: tuple[type[Pretrained], ...]) -> Pretrained:
    """One of the models, by the class that its config.json names; with one kind only, that."""
    if len(kinds) == 1:
        return kinds[0].from_pretrained(folder)
    path = folder / "config.json"
    name = field(read_json(path), "_class_name", str, path)
    known = {layout_of(kind).architecture: kind for kind in kinds}
    if name not in known:
        raise Mistake(f"{path}: {name!r} is not supported there, only {', '.join(known)}")
    return known[name].from_pretrained(folder)


def check_parts(cls: type[Pipeline], values: dict[str, Any], path: Path) -> None:
    """Every network of the pipeline is named, and none that would be left out in silence."""
    for name, entry in values.items():
        there = isinstance(entry, list) and any(part is not None for part in entry)
        if there and name not in (*cls.kinds, "scheduler", *LEFT_OUT):
            raise Mistake(f"{path}: the part {name!r} is not supported in a {cls.__name__}")
    for name in (*cls.kinds, "scheduler"):
        if not isinstance(values.get(name), list):
            raise Mistake(f"{path}: the part {name!r} is missing, which a {cls.__name__} needs")
