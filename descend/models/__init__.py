"""Models, flat: one family per file, named as config.json names it (`model_type`)."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from descend import own_code
from descend.errors import Mistake, nearest
from descend.files import field_or, items, read_json
from descend.weights import stable_baselines
from descend.weights.checkpoints import CHECKSUMS, checkpoint_names, resolve_checkpoint, step_of
from descend.weights.digests import Damaged, verify_model
from descend.weights.folder import ADAPTER, PARTS
from descend.weights.pretrained import FORMS, OWN, Pretrained

SAME_LAYOUT = {
    "DDIMPipeline": "DDPMPipeline",
    "StableDiffusionImg2ImgPipeline": "StableDiffusionPipeline",
    "StableDiffusionInpaintPipeline": "StableDiffusionPipeline",
}
"""Pipelines of diffusers with the parts of another one."""
PRUNED = 5  # times that a checkpoint may be replaced by a better one while it is being opened


def take_codes(model: nn.Module, said: Mapping[str, Any]) -> None:
    """Layers of codes, as `nn/quantized.py` saves them; imported only where a folder has them."""
    from descend.nn.quantized import rebuild

    rebuild(model, said)


FORMS["descend"] = take_codes


def names() -> list[str]:
    """Every model family: the files of this folder."""
    return sorted(p.stem for p in Path(__file__).parent.glob("*.py") if not p.stem.startswith("_"))


def model_class(name: str, architecture: str = "") -> type[Pretrained]:
    """The model class of a file: the one subclass of Pretrained that it defines.

    A file with several heads lists them in ARCHITECTURES; without a name it is the one that LAYOUT names.
    """
    return choose_class(import_module(f"{__name__}.{name}"), architecture)


def choose_class(file: ModuleType, architecture: str = "") -> type[Pretrained]:
    """The model class of a file that is imported."""
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
    if not is_own(type(config)):
        return model_class(type(config).__module__.rpartition(".")[2])(config)
    return own_model_class(type(config))(config)


def is_own(config: type) -> bool:
    """Whether a config is of the user's own module."""
    return not config.__module__.startswith(f"{__name__}.")


def own_model_class(config: type) -> type[Pretrained]:
    """The model of a config of the user's: the class in the same file that names it, `Config = MyConfig`."""
    file = sys.modules[config.__module__]
    classes = [c for c in vars(file).values() if isinstance(c, type) and c.__module__ == file.__name__]
    found = [c for c in classes if vars(c).get("Config") is config]
    where = f"{getattr(file, '__file__', None) or file.__name__}"
    example = f"class MyModel(Pretrained): Config = {config.__name__}"
    if not found:
        raise Mistake(f"{where}: no class there is the model of {config.__name__}; write {example}")
    if len(found) > 1:
        names = " and ".join(c.__name__ for c in found)
        raise Mistake(f"{where}: {names} both say Config = {config.__name__}; leave it in one of them")
    if not issubclass(found[0], Pretrained):
        module = Pretrained.__module__
        raise Mistake(
            f"{where}: {found[0].__name__} must be saved and loaded: from {module} import Pretrained; {example}"
        )
    return found[0]


def check_own_config(config: object) -> type:
    """The config that the user names for a model, if it is one: a frozen dataclass whose fields have defaults."""
    name = getattr(config, "__name__", str(config))
    if not (isinstance(config, type) and dataclasses.is_dataclass(config)):
        raise Mistake(f"{name} is not a dataclass; write @dataclass(frozen=True) above the class of the config")
    if not config.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise Mistake(
            f"{name} is not frozen, and the values of a recipe must not change; write @dataclass(frozen=True)"
        )
    for field in dataclasses.fields(config):
        if field.init and field.default is field.default_factory is dataclasses.MISSING:
            raise Mistake(f"{name}: its field {field.name} needs a default, such as {field.name}: int = 64")
    if is_own(config):
        own_model_class(config)
    return config


def with_head(config: object, head: str) -> Pretrained:
    """A new model of the config's family with another head: with_head(BertConfig(), "ForTokenClassification")."""
    name = type(config).__module__.rpartition(".")[2]
    heads: dict[str, type[Pretrained]] = getattr(sys.modules[type(config).__module__], "ARCHITECTURES", {})
    for architecture, kind in heads.items():
        if architecture.endswith(head):
            return kind(config)
    raise Mistake(f"{name} has no head {head!r}; choose a family that has one, such as bert")


def model_folder(folder: str | Path, checkpoint: str | int = "best") -> Path:
    """A model folder itself, or a checkpoint of a run's folder: best, last or a step."""
    return resolve_checkpoint(folder, checkpoint)


def load(folder: str | Path, checkpoint: str | int = "best", code: str | Path | ModuleType | None = None) -> Pretrained:
    """The model in a Hugging Face folder or in a run of descend, in evaluation mode.

    Args:
        folder: a model folder (config.json, model.safetensors), a run's folder, or a policy that Stable-Baselines3
            saved (.zip).
        checkpoint: of a run: best, last or a step.
        code: the file or module of a model of your own, where it is not found by its name.
    """
    own_code.use_code(code)
    if is_policy_file(folder):
        return load_policy(Path(folder))
    for _ in range(PRUNED):
        found = model_folder(folder, checkpoint)
        try:
            verify_model(found)
            return _load(found)
        except Damaged as damage:
            if found.is_dir():
                raise Mistake(f"{damage}. {name_way_out(found)}") from None
        except Mistake:
            if found.is_dir():
                raise
    raise Mistake(f"{folder}: its checkpoints change too quickly; try again")


def is_policy_file(path: str | Path) -> bool:
    """Whether it is a policy of Stable-Baselines3: a file, where everything else is a folder."""
    return Path(path).suffix == ".zip" and not Path(path).is_dir()


def load_policy(path: Path) -> Pretrained:
    """The policy of a .zip that Stable-Baselines3 saved."""
    found = stable_baselines.read_policy(path)
    model = model_class(found.family)(config_class(found.family)(**found.sizes))
    model.load_state_dict(found.tensors)
    return model.eval()


def name_way_out(found: Path) -> str:
    """What to do about a damaged checkpoint."""
    run = found.parent.parent
    others = [str(step_of(name)) for name in checkpoint_names(found.parent) if name != found.name]
    if others and found.parent.name == "checkpoints":
        return f"Open another checkpoint (--checkpoint {' or '.join(others)}), or train on: descend resume {run}"
    return f"Copy the folder again; to take its files as they are, delete {found / CHECKSUMS}"


def find_by_class(name: str) -> str:
    """The file of a class of diffusers, which names its class and no family: UNet2DModel is in unet_2d."""

    def shorten(name: str) -> str:
        return name.lower().replace("_", "").removesuffix("model")

    name = SAME_LAYOUT.get(name, name)
    return next((file for file in names() if shorten(file) == shorten(name)), name)


def _load(folder: Path) -> Pretrained:
    """The model in a folder, by what its config.json says."""
    path = folder / "config.json"
    if (folder / ADAPTER).exists() and not path.exists():
        from descend.models._adapted import open_adapted

        return open_adapted(folder)
    if (folder / PARTS).exists():
        path = folder / PARTS
    values = read_json(path)
    if own := field_or(values, OWN, str, "", path):
        config = own_code.find_own(own, str(path))
        return own_model_class(check_own_config(config)).from_pretrained(folder)
    name = field_or(values, "model_type", str, "", path).replace("-", "_")
    name = name or find_by_class(field_or(values, "_class_name", str, "", path))
    if name not in names():
        known = ", ".join(names())
        raise Mistake(f"{path}: model_type {name!r} is unknown.{nearest(name, names())} Known: {known}")
    architectures = items(values, "architectures", str, path) if values.get("architectures") else []
    try:
        kind = model_class(name, *architectures[:1])
    except Mistake as error:
        raise Mistake(f"{path}: architecture {error}") from None
    return kind.from_pretrained(folder)
