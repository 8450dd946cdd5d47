"""A model folder in the Hugging Face layout: config.json and model.safetensors, whole or sharded. Never a pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from descend.errors import Mistake, nearest
from descend.weights.layout import Layout, read_json
from descend.weights.rules import Rule, find, place

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.pt", "model.pth")
SHARD_BYTES = 5 * 2**30


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder; a folder with pickles only is refused with the way to convert it."""
    if (folder / WEIGHTS).exists():
        return [folder / WEIGHTS]
    if (folder / INDEX).exists():
        names = sorted(set(read_json(folder / INDEX).get("weight_map", {}).values()))
        for name in names:
            if Path(name).name != name:
                raise Mistake(f"{folder / INDEX} points outside its folder: {name!r}")
            if not (folder / name).exists():
                raise Mistake(f"{folder / INDEX} names {name}, which is not in the folder; copy the missing shard")
        return [folder / name for name in names]
    for name in PICKLES:
        if (folder / name).exists():
            raise Mistake(
                f"{folder / name} is a pickle, which can run code when opened, so it is not read. Convert it once: "
                f'python -c "import torch, safetensors.torch as s; '
                f"s.save_file({{k: v.clone().contiguous() for k, v in "
                f"torch.load('{folder / name}', weights_only=True).items()}}, '{folder / WEIGHTS}')\""
            )
    raise Mistake(f"{folder} holds no {WEIGHTS}; is it a model folder?")


def _tensors(files: list[Path]) -> Iterator[tuple[str, Tensor, Path]]:
    for path in files:
        try:
            with safe_open(path, framework="pt") as file:
                for key in file.keys():  # noqa: SIM118  (not a dict)
                    yield key, file.get_tensor(key), path
        except SafetensorError as error:
            raise Mistake(f"{path} is damaged or not a safetensors file: {error}") from None


def read_weights(model: nn.Module, rules: list[Rule], layout: Layout, folder: Path) -> None:
    """Copy a folder's tensors into the model. A missing, unknown or mis-shaped key is a mistake that names it."""
    state = model.state_dict()
    waiting = {name: pieces(name, tensor, rules) for name, tensor in state.items()}
    parts = {name.partition(".")[0] for name in state}
    tied: list[tuple[str, str, Tensor]] = []
    seen: dict[str, str] = {}  # the file's key -> ours
    for key, tensor, path in _tensors(weight_files(folder)):
        found = find(key, rules, "theirs") or find(layout.bare_prefix + key, rules, "theirs")
        if found is None:
            known = [rule.theirs for rule in rules]
            raise Mistake(f"{path}: unknown key {key!r} for {type(model).__name__}.{nearest(key, known)}")
        rule, other = found
        if rule.same_as and (not rule.ours or other not in state):
            tied.append((key, rule.same_as if rule.ours else other, tensor))
            continue
        if not rule.ours:
            continue
        if other.partition(".")[0] not in parts:
            continue  # of a head that this class of the family does not have
        at = place(rule, key, layout.bare_prefix) if rule.stacked else 0
        if other not in state or (rule.stacked and at >= len(state[other])):
            raise Mistake(f"{path}: key {key!r} is beyond this model; config.json says it is smaller")
        to = state[other][at] if rule.stacked else state[other]
        tensor = rule.load(tensor)
        if tensor.shape != to.shape:
            raise Mistake(
                f"{path}: key {key!r} has shape {tuple(rule.save(tensor).shape)}, "
                f"config.json asks for {tuple(rule.save(to).shape)}"
            )
        to.copy_(tensor)
        waiting[other] -= 1
        seen[key] = seen[layout.bare_prefix + key.removeprefix(layout.bare_prefix)] = other
    missing = [name for name, count in waiting.items() if count > 0]
    if missing:
        names = sorted(found[1] for name in missing if (found := find(name, rules, "ours")))
        raise Mistake(f"{folder}: missing key {names[0]!r}" + (f" and {len(names) - 1} more" if names[1:] else ""))
    for key, twin, tensor in tied:
        if twin in seen and not torch.equal(tensor.to(state[seen[twin]].dtype), state[seen[twin]]):
            raise Mistake(
                f"{folder}: {key!r} differs from {twin!r}; this model ties the two, untied weights do not fit"
            )


def pieces(name: str, tensor: Tensor, rules: list[Rule]) -> int:
    """How many tensors of the file make this one; without a rule the list of the model is wrong."""
    found = find(name, rules, "ours")
    if found is None:
        raise KeyError(f"no key rule for {name!r}: add one to KEYS")
    return len(tensor) if found[0].stacked else 1


def public(state: Mapping[str, Tensor], rules: list[Rule]) -> dict[str, Tensor]:
    """The tensors under their public names, as a file has them."""
    tensors: dict[str, Tensor] = {}
    for name, tensor in state.items():
        found = find(name, rules, "ours")
        if found is None:
            raise KeyError(f"no key rule for {name!r}: add one to KEYS")
        parts = {found[1]: tensor}
        if found[0].stacked:
            parts = {found[1].replace("{}", str(i)): part for i, part in enumerate(tensor.unbind(0))}
        tensors |= {key: found[0].save(part.detach()).cpu().contiguous() for key, part in parts.items()}
    return tensors


def write_weights(state: Mapping[str, Tensor], rules: list[Rule], folder: Path, shard_bytes: int = SHARD_BYTES) -> None:
    """Write a state dict under the public names, in shards of at most `shard_bytes` when it is larger."""
    tensors = public(state, rules)
    shards: list[dict[str, Tensor]] = [{}]
    size = 0
    for key, tensor in tensors.items():
        if size and size + tensor.nbytes > shard_bytes:
            shards.append({})
            size = 0
        shards[-1][key] = tensor
        size += tensor.nbytes
    if len(shards) == 1:
        save_file(shards[0], folder / WEIGHTS, metadata={"format": "pt"})
        return
    weight_map: dict[str, str] = {}
    for i, shard in enumerate(shards, start=1):
        name = f"model-{i:05d}-of-{len(shards):05d}.safetensors"
        save_file(shard, folder / name, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(shard, name)
    total = sum(tensor.nbytes for tensor in tensors.values())
    write_json(folder / INDEX, {"metadata": {"total_size": total}, "weight_map": weight_map})


def write_json(path: Path, value: object) -> None:
    """JSON written aside and renamed, so that a reader never sees half a file."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(aside, path)
