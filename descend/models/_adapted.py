"""A frozen model with adapters: it computes, writes, is saved and opened like any model, and its weights never change.

    y = base(x) with the adapter that is selected                   one base in memory for all of them
    adapter_config.json, adapter_model.safetensors                  the adapter, as PEFT has it (`weights/peft.py`)
    base.json                                                       the folder of the base, and its checksum
    base_rows.safetensors                                           rows of embeddings that were added to the base
    base/                                                           the base itself, only where no folder holds it

The checksum is asked for when the folder is opened: an adapter on another base is a mistake in one line. Virtual tokens
(soft prompts, prefixes) take places of the context: `config.context` is what is left for text.

Systems: lora, prefix-tuning, bottleneck-adapters
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, cast

import torch
from torch import Tensor, nn

from descend.contracts import HasDecoder
from descend.errors import Mistake, nearest
from descend.models._adapter_files import BASE, WHERE, Origin, read_module, read_origin, write_module, write_origin
from descend.nn.adapters.adapter import Adapter, VirtualAdapter, share
from descend.weights.companions import read_companions, write_companions
from descend.weights.folder import SHARD_BYTES
from descend.weights.peft import CONFIG
from descend.weights.pretrained import Pretrained

FIRST = "default"


class Adapted(Pretrained):
    """A frozen model and its adapters by name, of which one is selected; none: the base alone."""

    frozen = ("base",)
    base: Any

    def __init__(self, base: Any, adapter: Adapter):
        super().__init__()
        self.base = base.requires_grad_(False).eval()
        self.adapters, self.selected = nn.ModuleDict(), ""
        self.companions, self.source = base.companions, Origin.find(base)
        self.add(FIRST, adapter)

    @property
    def adapter(self) -> Adapter | None:
        """The one that is selected."""
        return cast("Adapter", self.adapters[self.selected]) if self.selected else None

    @property
    def virtual(self) -> int:
        """m: how many virtual tokens stand before every text."""
        return self.adapter.virtual if isinstance(self.adapter, VirtualAdapter) else 0

    @property
    def config(self) -> Any:
        """The base's, with the context that is left for text."""
        found, m = self.base.config, self.virtual
        return dataclasses.replace(found, context=found.context - m) if m else found

    def add(self, name: str, adapter: Adapter) -> None:
        """One more adapter for the same base; it is selected."""
        if name in self.adapters or not name or "." in name:
            raise Mistake(
                f"adapter {name!r}: give a name that is free and has no dot; there are {', '.join(self.adapters)}"
            )
        self.adapters[name] = adapter
        self.select(name)
        if self.virtual >= getattr(self.base.config, "context", self.virtual + 1):
            raise Mistake(
                f"{self.virtual} virtual tokens leave no room for text in a context of {self.base.config.context}"
            )

    def select(self, name: str = "") -> None:
        """Compute with this adapter from now on; without a name with the base alone. Nothing is read or copied."""
        if name and name not in self.adapters:
            raise Mistake(
                f"there is no adapter {name!r}.{nearest(name, self.adapters)} There are {', '.join(self.adapters)}"
            )
        if self.adapter is not None:
            self.adapter.detach()
        self.selected = name
        for key, adapter in self.adapters.items():
            adapter.requires_grad_(key == name)
        if self.adapter is not None:
            self.adapter.attach(self.base)

    def load_adapter(self, name: str, folder: str | Path) -> None:
        """Add an adapter that was saved, for this base."""
        folder = Path(folder)
        origin = read_origin(folder)
        if origin is not None and self.source is not None and origin.checksum != self.source.checksum:
            raise Mistake(f"{folder} holds an adapter for another base ({origin.folder}), not for {self.source.folder}")
        self.add(name, read_module(self.base, folder))

    def train(self, mode: bool = True) -> Self:
        """The adapters; the base stays as it is."""
        super().train(mode)
        self.base.eval()
        return self

    def forward(self, x: Tensor, *others: Tensor) -> Any:
        m = self.virtual
        return self.base(self.lengthen(x), *others)[:, m:] if m else self.base(x, *others)

    def lengthen(self, tokens: Tensor) -> Tensor:
        """Tokens (b, t) behind the virtual tokens: (b, m + t)."""
        if not isinstance(self.adapter, VirtualAdapter):
            return tokens
        ids = self.adapter.ids(self.base.config.vocab).to(tokens)
        return torch.cat([ids.expand(len(tokens), -1), tokens], dim=1)

    def merged(self) -> Any:
        """A plain model that computes the same, with merged weights; it shares the other tensors with the base."""
        found = share(self.base) if self.adapter is None else self.adapter.merged(self.base)
        found.companions, found.origin = self.companions, None
        return found

    def with_files(self, folder: Path) -> Self:
        """With what lies in an adapter's folder beside it, such as a tokenizer."""
        own = {
            n: file for n, file in read_companions(folder).items() if n not in (CONFIG, WHERE, f"{BASE}/config.json")
        }
        self.companions = {**self.companions, **own}
        return self

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """The adapter saved in this folder, by descend or by PEFT, on its base."""
        return cast("Self", open_adapted(Path(folder)))

    def save_pretrained(
        self, folder: str | Path, shard_bytes: int = SHARD_BYTES, state: Mapping[str, Tensor] | None = None
    ) -> dict[str, dict[str, Tensor]]:
        """Write the selected adapter, and where its base is. Returns what each file of weights holds."""
        if self.adapter is None:
            raise Mistake("no adapter is selected: select one, or save the base")
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        state = self.state_dict() if state is None else state
        prefix = f"adapters.{self.selected}."
        own = {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}
        where = folder / BASE if self.source is None else self.source.folder
        written = write_module(self.base, self.adapter, own, folder, where)
        if self.source is None:
            files = self.base.save_pretrained(folder / BASE, shard_bytes)
            written |= {f"{BASE}/{name}": tensors for name, tensors in files.items()}
        written |= write_origin(self.base, self.source, folder)
        write_companions(folder, self.companions)
        return written


class AdaptedWriter(Adapted):
    """A frozen language model with adapters: tokens (b, t) -> logits (b, t, v)"""

    def decoder(self) -> Any:
        """In the middle of writing, as `descend.sampling` takes it; LoRA is merged, and as fast as the base."""
        return self.base.decoder() if self.adapter is None else self.adapter.decoder(self.base)

    def states(self, tokens: Tensor) -> Tensor:
        """What the logits are read from (b, t, d), of a base that has it."""
        found: Tensor = self.base.states(self.lengthen(tokens))
        return found[:, self.virtual :]

    def predict(self, states: Tensor) -> Tensor:
        """Logits (b, t, v)."""
        logits: Tensor = self.base.predict(states)
        return logits


def adapt(base: Any, adapter: Adapter) -> Adapted:
    """The model with an adapter; its own weights are frozen."""
    if isinstance(base, Adapted):
        raise Mistake("the model has adapters already; merge them first, or add another one by add(name, adapter)")
    return (AdaptedWriter if isinstance(base, HasDecoder) else Adapted)(base, adapter)


def open_adapted(folder: Path, base: str | Path = "") -> Adapted:
    """The adapter in a folder on its base: the one that the folder names, or the one in the folder `base`."""
    origin = read_origin(folder)
    model = Origin.open(folder, origin, base)
    return adapt(model, read_module(model, folder)).with_files(folder).eval()
