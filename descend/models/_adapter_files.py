"""Where the base of an adapter is, and what an adapter's folder holds of each kind.

    base.json    {"folder": "/runs/base/checkpoints/step-000200", "relative": "../../../base/..", "checksum": ".."}

The base is looked for in its folder, then where it lies relative to the adapter, so that both can be moved together. A
base with more rows than the one in its folder (new special tokens) is that one and the rows of base_rows.safetensors.
Where the base was changed after it was read, or never was in a folder, it is saved beside the adapter (`base/`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.files import field, field_or, items, read_json, write_json
from descend.models import load
from descend.nn.adapters.adapter import Adapter
from descend.nn.adapters.bottleneck import BottleneckAdapters
from descend.nn.adapters.lora import LowRankUpdate, LowRankUpdates
from descend.nn.adapters.prefix import PrefixVectors, find_attention
from descend.nn.adapters.soft_prompt import PromptVectors, find_embedding
from descend.nn.attention.rotary import rotate
from descend.nn.decoding.cached import CachedDecoder
from descend.weights import peft
from descend.weights.digests import digest_state
from descend.weights.files import open_tensors
from descend.weights.tensor_file import write_tensors

BASE, ROWS, WHERE = "base", "base_rows.safetensors", "base.json"
NAME = "base_model_name_or_path"
OWN_KIND = "DESCEND_BOTTLENECK"
KINDS = ("LORA", "PROMPT_TUNING", "PREFIX_TUNING", OWN_KIND)


@dataclass(frozen=True)
class Origin:
    """The folder of a base, and the checksum of all of its tensors, added rows included."""

    folder: Path
    checksum: str
    relative: str = ""
    rows: int = 0
    """How many tokens were added to the vocabulary that the folder has."""

    @classmethod
    def find(cls, base: Any) -> Self | None:
        """Where the base can be read again, bit for bit; None: nowhere."""
        if base.origin is None or not base.origin.is_dir():
            return None
        theirs, mine = load(base.origin).state_dict(), base.state_dict()
        if theirs.keys() != mine.keys() or not all(begins_with(mine[name], tensor) for name, tensor in theirs.items()):
            return None
        added = max(len(mine[name]) - len(tensor) if tensor.dim() else 0 for name, tensor in theirs.items())
        return cls(base.origin.resolve(), digest_state(mine), rows=added)

    @classmethod
    def open(cls, folder: Path, origin: Self | None, base: str | Path = "") -> Any:
        """The base of the adapter in a folder; another one is refused."""
        if (folder / BASE / "config.json").exists():
            inside = load(folder / BASE)
            inside.origin = None  # it is part of this folder, which may go
            return inside
        said = field_or(read_json(folder / peft.CONFIG), NAME, str, "", folder / peft.CONFIG)
        places: list[str | Path] = (
            [base] if base else [origin.folder, folder / origin.relative] if origin else [said, folder / said]
        )
        found = next((Path(place) for place in places if str(place) and Path(place).is_dir()), None)
        if found is None:
            raise Mistake(
                f"{folder / peft.CONFIG}: the base {str(places[0])!r} is not a folder here; write the folder of the "
                f"base model there ({NAME})" + (f" and into {WHERE}" if origin else "")
            )
        model: Any = load(found)
        if origin is not None and origin.rows:
            model = add_rows(model, folder / ROWS, origin.rows)
        if origin is not None and digest_state(model.state_dict()) != origin.checksum:
            raise Mistake(
                f"{found} is not the base that the adapter in {folder} was trained on: its weights are others; "
                f"put the original back"
            )
        return model


def begins_with(mine: Tensor, theirs: Tensor) -> bool:
    """Whether a tensor is another one, bit for bit, perhaps with rows after it."""
    if mine.dim() != theirs.dim() or mine.dtype != theirs.dtype or mine.shape[1:] != theirs.shape[1:]:
        return False
    return torch.equal(mine[: len(theirs)] if mine.dim() else mine, theirs.to(mine.device))


def add_rows(model: Any, path: Path, count: int) -> Any:
    """The same model for more tokens, with the rows in the file after the others."""
    file = open_tensors(path)
    grown = type(model)(replace(model.config, vocab=model.config.vocab + count))
    old = model.state_dict()
    with torch.no_grad():
        for name, tensor in grown.state_dict().items():
            rows = [old[name], file.get(name)] if name in file.shapes else [old[name]]
            whole = torch.cat(rows) if len(rows) > 1 else rows[0]
            if whole.shape != tensor.shape:
                raise Mistake(f"{path}: {name!r} does not fit the base that {WHERE} names")
            tensor.copy_(whole)
    grown.companions, grown.origin = model.companions, model.origin
    return grown.eval()


def read_origin(folder: Path) -> Origin | None:
    """What base.json says; None where PEFT wrote the folder."""
    path = folder / WHERE
    if not path.exists():
        return None
    said = read_json(path)
    place, checksum = (field(said, name, str, path) for name in ("folder", "checksum"))
    return Origin(
        Path(place), checksum, field_or(said, "relative", str, "", path), field_or(said, "rows", int, 0, path)
    )


def write_origin(base: Any, origin: Origin | None, folder: Path) -> dict[str, dict[str, Tensor]]:
    """base.json, and the rows that its folder does not have. Returns what files of tensors hold."""
    if origin is None:
        return {}
    relative = os.path.relpath(origin.folder, folder.resolve())
    said = {"folder": str(origin.folder), "relative": relative, "checksum": origin.checksum, "rows": origin.rows}
    write_json(folder / WHERE, said)
    if not origin.rows:
        return {}
    old = base.config.vocab - origin.rows
    rows = {
        k: x[old:].detach().cpu().contiguous()
        for k, x in base.state_dict().items()
        if x.dim() and len(x) == base.config.vocab
    }
    write_tensors(folder / ROWS, rows, metadata={"format": "pt"})
    return {ROWS: rows}


def write_module(
    base: Any, adapter: Adapter, state: Mapping[str, Tensor], folder: Path, where: Path
) -> dict[str, dict[str, Tensor]]:
    """The adapter's two files, with the numbers of `state`."""
    if isinstance(adapter, LowRankUpdates):
        pairs = {place: (state[f"updates.{i}.a"], state[f"updates.{i}.b"]) for i, place in enumerate(adapter.places)}
        first = next(update for _, update in adapter.items())
        config, tensors = peft.lora_to_peft(base, peft.LoraTensors(pairs, first.scale, first.dropout))
    elif isinstance(adapter, PromptVectors):
        p, (heads, depth) = state["p"], count_heads(base)
        config = peft.prompt_config(base, "PROMPT_TUNING", len(p), p.shape[1], heads, depth)
        tensors = {"prompt_embeddings": p}
    elif isinstance(adapter, PrefixVectors):
        p, heads = state["p"], key_heads(base)
        config = peft.prompt_config(base, "PREFIX_TUNING", len(p), p.shape[3], heads, p.shape[1])
        tensors = {"prompt_embeddings": turn_keys(base, p, 1).flatten(1)}
    elif isinstance(adapter, BottleneckAdapters):
        config = {
            "peft_type": OWN_KIND,
            "target_modules": adapter.places,
            "size": adapter.size,
            "activation": adapter.f,
        }
        tensors = {
            f"{place}.{part}.weight": state[f"adapters.{i}.{part}.weight"]
            for i, place in enumerate(adapter.places)
            for part in ("down", "up")
        }
    else:
        raise Mistake(f"a {type(adapter).__name__} cannot be saved")
    return peft.write_adapter(folder, {NAME: str(where), **config}, tensors)


def read_module(base: Any, folder: Path) -> Adapter:
    """The adapter in a folder, for this base."""
    config, tensors = peft.read_adapter(folder)
    path = folder / peft.CONFIG
    kind = field(config, "peft_type", str, path)
    if kind not in KINDS:
        raise Mistake(f"{path}: peft_type {kind!r} is not supported, only {', '.join(KINDS)}")
    like = next(base.parameters())
    if kind == "LORA":
        lora = peft.lora_from_peft(base, config, tensors, folder)
        made = {}
        for place, (a, b) in lora.updates.items():
            update = LowRankUpdate(a.shape[1], b.shape[0], a.shape[0], lora.scale, lora.dropout).to(like)
            fill(update, {"a": a, "b": b})
            made[place] = update
        return LowRankUpdates(made)
    if kind == "PROMPT_TUNING":
        table = find_embedding(base).weight
        return PromptVectors(peft.read_prompt(config, tensors, table.shape[1], folder).to(table))
    if kind == "PREFIX_TUNING":
        kv_heads, depth = key_heads(base), len(find_attention(base))
        size = width_of_keys(base)
        p = peft.read_prompt(config, tensors, depth * 2 * size, folder).unflatten(1, (depth, 2, size)).to(like)
        assert size % kv_heads == 0
        return PrefixVectors(turn_keys(base, p, -1).contiguous())
    places = items(config, "target_modules", str, path)
    size, f = field(config, "size", int, path), field(config, "activation", str, path)
    found = BottleneckAdapters.make(base, places, size, f)
    state = {
        f"adapters.{i}.{part}.weight": f"{place}.{part}.weight"
        for i, place in enumerate(places)
        for part in ("down", "up")
    }
    if missing := [theirs for theirs in state.values() if theirs not in tensors]:
        raise Mistake(f"{folder / peft.TENSORS}: missing key {missing[0]!r}")
    fill(found, {ours: tensors[theirs] for ours, theirs in state.items()})
    return found


@torch.no_grad()
def fill(module: Any, tensors: Mapping[str, Tensor]) -> None:
    """Copy tensors into a module, each of the right shape."""
    for name, tensor in module.state_dict().items():
        if tensor.shape != tensors[name].shape:
            raise Mistake(
                f"{name!r} is {tuple(tensors[name].shape)}, this base asks for "
                f"{tuple(tensor.shape)}: is it the adapter of another base?"
            )
        tensor.copy_(tensors[name])


def count_heads(base: Any) -> tuple[int, int]:
    """Heads of a layer and layers of attention; 1 and 0 where there is none."""
    try:
        layers = find_attention(base)
    except Mistake:
        return 1, 0
    return layers[0].heads, len(layers)


def width_of_keys(base: Any) -> int:
    """d_kv: numbers of a key of a layer, all heads together."""
    decoder = base.decoder()
    if not isinstance(decoder, CachedDecoder) or decoder.blocks[0].cached[0] != 2:
        raise Mistake(f"a {type(base).__name__} has no keys and values of its own for a prefix")
    _, heads, size = decoder.blocks[0].cached
    return heads * size


def key_heads(base: Any) -> int:
    """Of a layer."""
    width_of_keys(base)
    heads: int = base.decoder().blocks[0].cached[1]
    return heads


def turn_keys(base: Any, p: Tensor, way: int) -> Tensor:
    """The prefix (m, depth, 2, d_kv) with its keys turned by positions 0 .. m − 1 (way 1), as a cache holds them, or
    turned back (−1); as it is where positions are not in the keys."""
    decoder, heads = base.decoder(), key_heads(base)
    angles = decoder.angles(torch.arange(len(p), device=p.device))
    if angles is None:
        return p
    cos, sin = angles
    if way < 0:
        length = cos.square() + sin.square()  # not 1 where the angles carry a scale of the scores
        cos, sin = cos / length, -sin / length
    keys = p[:, :, 0].unflatten(-1, (heads, -1)).transpose(0, 1)  # (depth, m, h, k)
    turned = rotate(keys, cos, sin).transpose(0, 1).flatten(2)
    return torch.stack([turned, p[:, :, 1]], dim=2)
