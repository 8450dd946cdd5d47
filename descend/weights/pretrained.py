"""from_pretrained and save_pretrained: the two methods every model has.

A model file holds, beside its class, `LAYOUT` (config names) and `KEYS` (weight rules), which it leaves out when the
names in the file are those of the model. The file's name is the `model_type` of config.json, so that a folder finds its
class and a new model is one new file. A family with several heads lists its classes in `ARCHITECTURES`, by the name
that config.json gives them; a file's head that a class does not have is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.weights.folder import SHARD_BYTES, read_weights, write_json, write_weights
from descend.weights.layout import config_from_json, config_to_json, read_json
from descend.weights.rules import Rule, same_names


class Pretrained(nn.Module):
    """A module that is built from one frozen config and saved as a folder."""

    Config: ClassVar[type]
    config: Any

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """The model saved in this folder, by descend or by transformers, in evaluation mode."""
        folder, file = Path(folder), _file(cls)
        if not folder.is_dir():
            raise Mistake(f"{folder} is not a folder")
        path = folder / "config.json"
        config: Any = config_from_json(cls.Config, file.LAYOUT, read_json(path), path)
        try:
            with torch.device("meta"):  # no time spent on initial values that the file replaces
                model = cls(config)
        except ValueError as error:
            raise Mistake(f"{path}: {error}") from None
        model.to_empty(device="cpu")
        with torch.no_grad():
            read_weights(model, _rules(file, model.state_dict()), folder, file.LAYOUT.bare_prefix)
        return model.eval()

    def save_pretrained(
        self, folder: str | Path, shard_bytes: int = SHARD_BYTES, state: Mapping[str, Tensor] | None = None
    ) -> dict[str, dict[str, Tensor]]:
        """Write config.json and the weights so that `descend.load` and transformers open them.

        `state` is the state dict to write instead of the module's own: gathered shards, averaged weights.
        Returns what each file of weights holds.
        """
        folder, file = Path(folder), _file(type(self))
        folder.mkdir(parents=True, exist_ok=True)
        model_type = file.__name__.rpartition(".")[2]
        state = self.state_dict() if state is None else state
        dtype = str(next(iter(state.values())).dtype).removeprefix("torch.")
        written = write_weights(state, _rules(file, state), folder, shard_bytes)
        values = config_to_json(self.config, file.LAYOUT, model_type, dtype)
        heads = (name for name, c in getattr(file, "ARCHITECTURES", {}).items() if isinstance(self, c))
        write_json(folder / "config.json", values | {"architectures": [next(heads, file.LAYOUT.architecture)]})
        return written


def _file(cls: type) -> Any:
    """The module that defines the model: of the class that names its Config (sharding puts a class on top of it)."""
    return sys.modules[next(c for c in cls.__mro__ if "Config" in vars(c)).__module__]


def _rules(file: Any, names: Iterable[str]) -> list[Rule]:
    """KEYS of a model file, or its own names."""
    rules: list[Rule] | None = getattr(file, "KEYS", None)
    return same_names(names) if rules is None else rules
