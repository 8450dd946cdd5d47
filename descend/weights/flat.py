"""One file of public tensors: .safetensors, or .pth and .pt of torch.save, under the names of a model's own list.

    read_flat(AlexNet(config), "alexnet.pth", TORCHVISION)        write_flat(model, "alexnet.safetensors", TORCHVISION)

A state dict on its own has no config.json, so the model is built first and the file must fit it (`weights.reading`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from descend.errors import Mistake
from descend.weights.files import PICKLED, open_tensors
from descend.weights.reading import read_tensors
from descend.weights.rules import Rule, rename_tensors
from descend.weights.tensor_file import write_tensors


def read_flat(model: nn.Module, path: str | Path, rules: Sequence[Rule]) -> None:
    """Copy the file's tensors into the model; nothing is copied unless everything fits."""
    read_tensors(model, rules, [open_tensors(Path(path))])


def write_flat(model: nn.Module, path: str | Path, rules: Sequence[Rule]) -> None:
    """Write the model's tensors under the public names, aside and then renamed."""
    path = Path(path)
    named = rename_tensors(model.state_dict(), rules)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    if path.suffix == ".safetensors":
        write_tensors(aside, named, metadata={"format": "pt"})
    elif path.suffix in PICKLED:
        torch.save({name: tensor.contiguous() for name, tensor in named.items()}, aside)
    else:
        raise Mistake(f"{path}: give a name that ends in .safetensors, .pth or .pt")
    os.replace(aside, path)
