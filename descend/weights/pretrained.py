"""from_pretrained and save_pretrained: the two methods every model has.

A model file holds, beside its class, `LAYOUT` (config names) and `KEYS` (weight rules), which it leaves out when the
names in the file are those of the model. The file's name is the `model_type` of config.json, so that a folder finds its
class and a new model is one new file. A family with several heads lists its classes in `ARCHITECTURES`, by the name
that config.json gives them; a file's head that a class does not have is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.files import read_json, write_json
from descend.own_code import store_name
from descend.weights.companions import read_companions, write_companions
from descend.weights.folder import NAMES, SHARD_BYTES, read_weights, write_weights
from descend.weights.layout import Layout, config_from_json, config_to_json
from descend.weights.rules import CODES, Rule, code_rules, same_names

OWN = "descend_config"
"""In config.json: the "module:Class" of a config of the user's own."""
KEPT_AS = "quantization_config"
"""In config.json: how the weights are kept where they are not plain numbers."""
FORMS: dict[str, Callable[[nn.Module, Mapping[str, Any]], None]] = {}
"""By its `quant_method`: what gives an empty model the layers of such a form. `descend.models` fills it."""
WRONG_SIZES = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What building a model from the numbers of a file may end with, where they do not belong together."""


class Pretrained(nn.Module):
    """A module that is built from one frozen config and saved as a folder."""

    Config: ClassVar[type]
    config: Any
    companions: Mapping[str, bytes] = MappingProxyType({})
    """The other files of the folder that it was read from, by name: its tokenizer, its image processor, .."""
    frozen: ClassVar[tuple[str, ...]] = ()
    """Child modules that never change and are not saved with it: the base below an adapter."""
    origin: Path | None = None
    """The folder that it was read from; its weights may have changed since."""
    kept_as: Mapping[str, Any] = MappingProxyType({})
    """How its weights are kept, where they are not plain numbers: `quantization_config` of config.json."""

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """The model saved in this folder, by descend or by transformers, in evaluation mode."""
        folder, file = Path(folder), _file(cls)
        if not folder.is_dir():
            raise Mistake(f"{folder} is not a folder")
        path = folder / "config.json"
        values = read_json(path)
        config: Any = config_from_json(cls.Config, _layout(file, cls), values, path)
        try:
            with torch.device("meta"):  # no time spent on initial values that the file replaces
                model = cls(config)
                take_form(model, values.get(KEPT_AS), path)
        except WRONG_SIZES as error:
            first = str(error).partition("\n")[0]
            raise Mistake(f"{path}: {first}") from None
        with torch.no_grad():
            read_weights(model, _rules(file, model.state_dict()), folder, _layout(file, cls).bare_prefix)
            _fill_unsaved(model, lambda: cls(config))
        model.companions, model.origin = read_companions(folder), folder
        return model.eval()

    def save_pretrained(
        self, folder: str | Path, shard_bytes: int = SHARD_BYTES, state: Mapping[str, Tensor] | None = None
    ) -> dict[str, dict[str, Tensor]]:
        """Write config.json and the weights so that `descend.load` and transformers open them, and what a folder that
        the model was read from had beside them, where the new one does not have it.

        `state` is the state dict to write instead of the module's own: gathered shards, averaged weights.
        Returns what each file of weights holds.
        """
        folder, file = Path(folder), _file(type(self))
        folder.mkdir(parents=True, exist_ok=True)
        layout, own = _layout(file, type(self)), _name_own(type(self.config))
        model_type = (own.rpartition(":")[0] or file.__name__).rpartition(".")[2]
        state = self.state_dict() if state is None else state
        dtype = str(next((x.dtype for x in state.values() if x.is_floating_point()), torch.float32))
        written = write_weights(
            state, _rules(file, state), folder, shard_bytes, NAMES.get(layout.library, NAMES["transformers"])
        )
        values = config_to_json(self.config, layout, model_type, dtype.removeprefix("torch."))
        values |= ({OWN: own} if own else {}) | ({KEPT_AS: dict(self.kept_as)} if self.kept_as else {})
        heads = [name for name, c in getattr(file, "ARCHITECTURES", {}).items() if isinstance(self, c)]
        write_json(folder / "config.json", values | ({"architectures": heads[:1]} if heads else {}))
        write_companions(folder, self.companions)
        return written

    def take_settings(self, config: Any) -> None:
        """What training measured and a config keeps (the scale of a latent); most models have nothing of the kind."""


def take_form(model: Pretrained, said: Any, path: Path) -> None:
    """Give an empty model the layers that its weights are kept in; a form that is not known here is refused by name."""
    if not said:
        return
    method = said.get("quant_method") if isinstance(said, dict) else said
    if method not in FORMS:
        known = ", ".join(sorted(FORMS))
        raise Mistake(f"{path}: {KEPT_AS}: method {method!r} cannot be read, only {known}; take the plain weights")
    try:
        FORMS[method](model, said)
    except Mistake as mistake:
        raise Mistake(f"{path}: {mistake}") from None
    model.kept_as = said


def _fill_unsaved(model: nn.Module, build: Callable[[], nn.Module]) -> None:
    """Give buffers that no file holds (masks, tables) the values of a new model: built on meta, they have none."""
    unsaved = dict(model.named_buffers()).keys() - model.state_dict().keys()
    if unsaved:
        with torch.random.fork_rng(devices=[]):
            fresh = dict(build().named_buffers())
        for name, buffer in model.named_buffers():
            if name in unsaved:
                buffer.copy_(fresh[name])


def _named(cls: type) -> type:
    """The class that names its Config: sharding puts another on top of it."""
    return next(c for c in cls.__mro__ if "Config" in vars(c))


def _file(cls: type) -> Any:
    """The module that defines the model."""
    return sys.modules[_named(cls).__module__]


def layout_of(cls: type) -> Layout:
    """How the folder of a model is written."""
    return _layout(_file(cls), cls)


def rules_of(model: Pretrained) -> list[Rule]:
    """How the tensors of a model are named and laid out in its folder."""
    return _rules(_file(type(model)), model.state_dict())


def _layout(file: Any, cls: type) -> Layout:
    """LAYOUT of a model file; without one, config.json has the names of the config's fields."""
    found: Layout | None = getattr(file, "LAYOUT", None)
    return Layout(_named(cls).__name__) if found is None else found


def _name_own(config: type) -> str:
    """How the config of a user's model is found again; nothing for one of descend."""
    return "" if config.__module__.startswith("descend.") else store_name(config)


def _rules(file: Any, names: Iterable[str]) -> list[Rule]:
    """KEYS of a model file, or its own names."""
    rules: list[Rule] | None = getattr(file, "KEYS", None)
    if rules is None:
        return same_names(names)
    return [*rules, *code_rules(rules)] if any(name.endswith(CODES) for name in names) else rules
