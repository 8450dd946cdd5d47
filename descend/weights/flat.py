"""One file of public tensors: .safetensors, or .pth and .pt of torch.save, under the names of a model's own list.

    read_flat(AlexNet(config), "alexnet.pth", TORCHVISION)        write_flat(model, "alexnet.safetensors", TORCHVISION)

A state dict on its own has no config.json, so the model is built first and the file must fit it: an unknown, missing or
mis-shaped key is a mistake that names it. A .pth is read with `weights_only`: tensors, and no code is run.
A head that the model does not have is left out, as in a model folder. `num_batches_tracked`, the count that batch norm
keeps, may be missing (files older than it) and stays as it is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from descend.errors import Mistake, nearest
from descend.weights.folder import pieces, public
from descend.weights.rules import Rule, find, place

PICKLED = (".pth", ".pt")
COUNT = "num_batches_tracked"


def read_flat(model: nn.Module, path: str | Path, rules: list[Rule]) -> None:
    """Copy the file's tensors into the model; nothing is copied unless everything fits."""
    path = Path(path)
    state = model.state_dict()
    parts = {name.partition(".")[0] for name in state}
    copies: list[tuple[Tensor, Tensor]] = []
    waiting = {name: pieces(name, tensor, rules) for name, tensor in state.items()}
    for key, tensor in tensors(path).items():
        found = find(key, rules, "theirs")
        if found is None:
            known = [found[1] for name in state if (found := find(name, rules, "ours"))]
            raise Mistake(f"{path}: unknown key {key!r} for {type(model).__name__}.{nearest(key, known)}")
        rule, ours = found
        if not rule.ours or ours.partition(".")[0] not in parts:
            continue
        at = place(rule, key) if rule.stacked else 0
        if ours not in state or (rule.stacked and at >= len(state[ours])):
            raise Mistake(f"{path}: key {key!r} is beyond this {type(model).__name__}; build it larger")
        to = state[ours][at] if rule.stacked else state[ours]
        tensor = rule.load(tensor)
        if tensor.shape != to.shape:
            theirs, asked = (tuple(rule.save(x).shape) for x in (tensor, to))
            raise Mistake(f"{path}: key {key!r} has shape {theirs}, this {type(model).__name__} asks for {asked}")
        copies.append((to, tensor))
        waiting[ours] -= 1
    missing = sorted(
        found[1] for name, n in waiting.items() if n > 0 and COUNT not in name and (found := find(name, rules, "ours"))
    )
    if missing:
        raise Mistake(f"{path}: missing key {missing[0]!r}" + (f" and {len(missing) - 1} more" if missing[1:] else ""))
    with torch.no_grad():
        for to, tensor in copies:
            to.copy_(tensor)


def write_flat(model: nn.Module, path: str | Path, rules: list[Rule]) -> None:
    """Write the model's tensors under the public names, aside and then renamed."""
    path = Path(path)
    named = public(model.state_dict(), rules)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    if path.suffix == ".safetensors":
        save_file(named, aside, metadata={"format": "pt"})
    elif path.suffix in PICKLED:
        torch.save(named, aside)
    else:
        raise Mistake(f"{path}: give a name that ends in .safetensors, .pth or .pt")
    os.replace(aside, path)


def tensors(path: Path) -> Mapping[str, Tensor]:
    """The named tensors of one file."""
    if not path.is_file():
        raise Mistake(f"{path} does not exist; give a file of weights (.safetensors, .pth or .pt)")
    if path.suffix == ".safetensors":
        try:
            return load_file(path)
        except SafetensorError as error:
            raise Mistake(f"{path} is damaged or not a safetensors file: {error}") from None
    if path.suffix not in PICKLED:
        raise Mistake(f"{path}: a file of weights ends in .safetensors, .pth or .pt")
    try:
        found: Any = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch lets through whatever a damaged or refused file causes
        first = str(error).strip().partition("\n")[0]
        raise Mistake(f"{path} is damaged, or holds more than tensors and is not read: {first}") from None
    if not isinstance(found, Mapping) or not all(isinstance(x, Tensor) for x in found.values()):
        raise Mistake(f"{path} is not a state dict: names and their tensors; save model.state_dict() alone")
    return found
