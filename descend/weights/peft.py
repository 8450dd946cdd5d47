"""Adapters as folders, both ways: adapter_config.json and adapter_model.safetensors, as PEFT writes and reads them.

    base_model.model.transformer.h.0.attn.c_attn.lora_A.weight     (r, in)     our h.0.attn.qkv, A
    base_model.model.transformer.h.0.attn.c_attn.lora_B.weight     (out, r)    our h.0.attn.qkv, B
    prompt_embeddings    (m, d)                  a soft prompt
    prompt_embeddings    (m, depth · 2 · d_kv)   a deep prefix: the key and the value of each layer, keys turned

The names are those of the base model's own folder (`KEYS`). A and B have one form whether the file keeps W as (out, in)
or, as GPT-2's, as (in, out) (`fan_in_fan_out`), so converting is renaming. A matrix that the file has in pieces or
stacked has no update of its own there and is refused. What PEFT does not know is written in the same two files, with
names of descend: bottleneck adapters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from descend.errors import Mistake, nearest
from descend.files import field, field_or, read_json, write_json
from descend.weights.files import open_tensors
from descend.weights.folder import ADAPTER
from descend.weights.pretrained import Pretrained, layout_of, rules_of
from descend.weights.rules import Lookup, Rule, find, rename, transpose
from descend.weights.tensor_file import write_tensors

CONFIG, TENSORS = ADAPTER, "adapter_model.safetensors"
ABOVE = "base_model.model."
"""What PEFT puts before the names of the model that it wraps."""
LORA = re.compile(r"(.+)\.lora_(A|B)\.(?:weight|\w+\.weight)")
PLAIN = {
    "bias": "none", "use_dora": False, "lora_bias": False, "rank_pattern": {}, "alpha_pattern": {},
    "modules_to_save": None, "layer_replication": None, "target_parameters": None, "trainable_token_indices": None,
    "use_qalora": False, "alora_invocation_tokens": None,
}  # fmt: skip
"""Settings that change what an adapter computes, and the values with which it is plain LoRA."""
VARIANTS = ("use_bdlora", "kasa_config", "arrow_config", "velora_config", "monteclora_config")


class LoraTensors(NamedTuple):
    """A and B by the name of our matrix."""

    updates: dict[str, tuple[Tensor, Tensor]]
    scale: float
    dropout: float


def read_adapter(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Settings and tensors of an adapter's folder."""
    config = read_json(folder / CONFIG)
    if not (folder / TENSORS).exists() and (folder / "adapter_model.bin").exists():
        raise Mistake(
            f"{folder / 'adapter_model.bin'} is a pickle, which can run code when opened, so it is not read; "
            f"save the adapter again with peft's save_pretrained (safe_serialization=True)"
        )
    file = open_tensors(folder / TENSORS)
    return config, {name: file.get(name) for name in file.shapes}


def write_adapter(
    folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> dict[str, dict[str, Tensor]]:
    """The two files; returns what the one of tensors holds."""
    held = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_tensors(folder / TENSORS, held, metadata={"format": "pt"})
    write_json(folder / CONFIG, dict(config))
    return {TENSORS: held}


def lora_to_peft(base: Pretrained, lora: LoraTensors) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Settings and tensors as PEFT has them."""
    rules, flips = rules_of(base), False
    table = Lookup(rules, "ours")
    tensors: dict[str, Tensor] = {}
    names: dict[str, str] = {}
    for place, (a, b) in lora.updates.items():
        rule, theirs = table.find_own(f"{place}.weight")
        check_whole(rule, place, theirs)
        names[place] = theirs.removesuffix(".weight")
        flips = flips or is_transposed(rule)
        tensors |= {f"{ABOVE}{names[place]}.lora_A.weight": a, f"{ABOVE}{names[place]}.lora_B.weight": b}
    rank = max(len(a) for a, _ in lora.updates.values())
    config = {
        "peft_type": "LORA",
        "task_type": task_type(base),
        "r": rank,
        "lora_alpha": whole(lora.scale * rank),
        "lora_dropout": lora.dropout,
        "target_modules": name_targets(names.values(), module_names(base, rules)),
        "fan_in_fan_out": flips,
        "bias": "none",
        "inference_mode": True,
    }
    return config, tensors


def lora_from_peft(
    base: Pretrained, config: Mapping[str, Any], tensors: Mapping[str, Tensor], path: Path
) -> LoraTensors:
    """A and B under our names; what is not plain LoRA on matrices of this model is refused by name."""
    for name, plain in PLAIN.items():
        if config.get(name) not in (plain, None, [], {}, False):
            raise Mistake(f"{path / CONFIG}: {name} = {config[name]!r} is not supported, only {plain!r}")
    for name in VARIANTS:
        if config.get(name):
            raise Mistake(
                f"{path / CONFIG}: {name} is set, which makes it another method than LoRA; it is not supported"
            )
    found: dict[str, dict[str, Tensor]] = {}
    rules = rules_of(base)
    for key, tensor in tensors.items():
        match = LORA.fullmatch(key.removeprefix(ABOVE))
        if match is None:
            raise Mistake(f"{path / TENSORS}: key {key!r} is not that of an A or B of LoRA")
        place = find_place(base, match[1], rules, path)
        found.setdefault(place, {})[match[2]] = tensor
    if not found:
        raise Mistake(f"{path / TENSORS} holds no A and no B")
    updates: dict[str, tuple[Tensor, Tensor]] = {}
    for place, pair in found.items():
        if pair.keys() != {"A", "B"}:
            raise Mistake(f"{path / TENSORS}: {place} has only one of A and B")
        out, inputs = base.state_dict()[f"{place}.weight"].shape
        a, b = pair["A"], pair["B"]
        if a.dim() != 2 or b.shape != (out, len(a)) or a.shape[1] != inputs:
            raise Mistake(
                f"{path / TENSORS}: A {tuple(a.shape)} and B {tuple(b.shape)} do not fit {place} of this base, "
                f"{out} × {inputs}: is it the adapter of another base?"
            )
        updates[place] = (a, b)
    rank, alpha = field(config, "r", int, path / CONFIG), float(config.get("lora_alpha", 8))
    if rank < 1 or any(len(a) != rank for a, _ in updates.values()):
        raise Mistake(f"{path / CONFIG}: r = {rank} is not the rank of the tensors beside it")
    scale = alpha / (rank**0.5 if config.get("use_rslora") else rank)
    return LoraTensors(updates, scale, float(field_or(config, "lora_dropout", float, 0.0, path / CONFIG)))


def find_place(base: Pretrained, theirs: str, rules: Sequence[Rule], path: Path) -> str:
    """Our name of a matrix that the file calls `theirs`."""
    prefix, state = layout_of(type(base)).bare_prefix, base.state_dict()
    for name in (f"{theirs}.weight", f"{prefix}{theirs}.weight"):
        found = find(name, rules, "theirs")
        if found is not None and found[1] in state:
            check_whole(found[0], found[1].removesuffix(".weight"), theirs)
            return found[1].removesuffix(".weight")
    known = module_names(base, rules)
    raise Mistake(
        f"{path / TENSORS}: {theirs!r} is not a matrix of this {type(base).__name__}.{nearest(theirs, known)} "
        f"Is it the adapter of another base?"
    )


def check_whole(rule: Rule, place: str, theirs: str) -> None:
    """Only a matrix that both sides have, as it is or transposed, has the same update on both."""
    plain = rename("a", "b")
    if rule.stacked or not (is_transposed(rule) or rule.load is plain.load):
        raise Mistake(
            f"{place} is kept in another arrangement as {theirs.removesuffix('.weight')} (stacked or permuted), so an "
            f"update of low rank of the one is none of the other; adapt other matrices"
        )


def is_transposed(rule: Rule) -> bool:
    return rule.load is transpose("a", "b").load


def module_names(base: Pretrained, rules: Sequence[Rule]) -> list[str]:
    """What the file calls the modules with a matrix."""
    table = Lookup(rules, "ours")
    found = (table.find(name) for name in base.state_dict() if name.endswith(".weight"))
    return [theirs[1].removesuffix(".weight") for theirs in found if theirs]


def name_targets(chosen: Any, known: Sequence[str]) -> list[str]:
    """The shortest ends of names that mean the chosen modules and no others, as `target_modules` has them."""
    mine = set(chosen)
    for parts in (1, 2):
        short = {".".join(name.split(".")[-parts:]) for name in mine}
        meant = {name for name in known if any(name == end or name.endswith(f".{end}") for end in short)}
        if meant == mine:
            return sorted(short)
    return sorted(mine)


def task_type(base: Pretrained) -> str | None:
    """What PEFT calls the kind of model."""
    return "CAUSAL_LM" if layout_of(type(base)).architecture.endswith(("LMHeadModel", "ForCausalLM")) else None


def whole(number: float) -> float | int:
    """2 for 2.0, as PEFT writes α."""
    return round(number) if abs(number - round(number)) < 1e-9 else number


def prompt_config(base: Pretrained, kind: str, virtual: int, width: int, heads: int, depth: int) -> dict[str, Any]:
    """Settings of a soft prompt (PROMPT_TUNING) or a deep prefix (PREFIX_TUNING)."""
    only = {"prompt_tuning_init": "RANDOM"} if kind == "PROMPT_TUNING" else {"prefix_projection": False}
    return {
        "peft_type": kind,
        "task_type": task_type(base),
        "num_virtual_tokens": virtual,
        "token_dim": width,
        "num_transformer_submodules": 1,
        "num_attention_heads": heads,
        "num_layers": depth,
        "inference_mode": True,
        **only,
    }


def read_prompt(config: Mapping[str, Any], tensors: Mapping[str, Tensor], width: int, path: Path) -> Tensor:
    """`prompt_embeddings` (m, width), if that is its shape."""
    virtual = field(config, "num_virtual_tokens", int, path / CONFIG)
    p = tensors.get("prompt_embeddings")
    if p is None or tuple(p.shape) != (virtual, width):
        there = "no prompt_embeddings" if p is None else f"prompt_embeddings of {tuple(p.shape)}"
        raise Mistake(
            f"{path / TENSORS} holds {there}; this base and {CONFIG} ask for {(virtual, width)}: is it the adapter of "
            f"another base?"
        )
    return p
