"""A language model as FILE.gguf, for llama.cpp and its kin; transformers opens it with `gguf_file=`.

    LLaMA, Mistral    Q and K rows permuted: rotary pairs (x_i, x_{i + k/2}) of a head become neighbours (x_2i, x_2i+1)
    GPT-2             as it is

    f32, f16     every matrix so; vectors (norms, biases) and GPT-2's positions stay f32
    q8_0         blocks of 32 numbers of a row: a scale in f16, and 8 bits each     8.5 bits a number
    q4_0         4 bits each, 4.5 in all; embedding and output in q8_0

GGUF's llama has no sliding window: of a Mistral with one, the context is written as the window, within which both
compute the same. Other rotary rules than the plain one are refused. The file is read again before it is said to be
done: the tensors of f32 are equal, the others within their rounding.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from descend.errors import Mistake, nearest
from descend.exports.gguf_header import load_package
from descend.exports.gguf_tokenizer import Vocabulary, read_vocabulary
from descend.models.gpt2 import GPT2
from descend.models.llama import Llama
from descend.models.mistral import Mistral
from descend.text.tokenizer import Tokenizer

BLOCK = 32
TYPES = {"f32": ("F32", 0), "f16": ("F16", 1), "q8_0": ("Q8_0", 7), "q4_0": ("Q4_0", 2)}
"""--type -> ggml's name, and the number of the file type."""
WITHIN = {"F32": 0.0, "F16": 2.0**-11, "Q8_0": 1 / 127, "Q4_0": 1 / 7}
"""The largest error in units of a block's largest number (F16: of the number itself): its rounding and the scale's."""
KEPT = {"q4_0": {"token_embd.weight": "Q8_0", "output.weight": "Q8_0"}}
ALWAYS = {"position_embd.weight": "F32"}
LLAMA = {
    "embed.weight": "token_embd.weight",
    "blocks.{}.norm_1.weight": "blk.{}.attn_norm.weight",
    "blocks.{}.attn.q.weight": "blk.{}.attn_q.weight",
    "blocks.{}.attn.k.weight": "blk.{}.attn_k.weight",
    "blocks.{}.attn.v.weight": "blk.{}.attn_v.weight",
    "blocks.{}.attn.out.weight": "blk.{}.attn_output.weight",
    "blocks.{}.norm_2.weight": "blk.{}.ffn_norm.weight",
    "blocks.{}.mlp.gate.weight": "blk.{}.ffn_gate.weight",
    "blocks.{}.mlp.up.weight": "blk.{}.ffn_up.weight",
    "blocks.{}.mlp.down.weight": "blk.{}.ffn_down.weight",
    "norm.weight": "output_norm.weight",
    "head.weight": "output.weight",
}
GPT_2 = {
    "wte.weight": "token_embd.weight",
    "wpe.weight": "position_embd.weight",
    **{
        f"h.{{}}.{ours}.{p}": f"blk.{{}}.{theirs}.{p}"
        for ours, theirs in {
            "ln_1": "attn_norm", "attn.qkv": "attn_qkv", "attn.out": "attn_output",
            "ln_2": "ffn_norm", "mlp.up": "ffn_up", "mlp.down": "ffn_down",
        }.items()
        for p in ("weight", "bias")
    },
    "ln_f.weight": "output_norm.weight",
    "ln_f.bias": "output_norm.bias",
}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """A family in the words of GGUF."""

    arch: str
    names: dict[str, str]
    describe: Callable[[Any, Any], None]
    """Writes the sizes of a config."""


def write_gguf(model: Any, folder: Path, path: Path, kind: str = "f32", name: str = "") -> float:
    """Write the file; returns by how much the stored numbers differ at most, in units of their rounding."""
    gguf = load_package()
    form, dtype = find_form(model), find_type(kind)
    if not (folder / "tokenizer.json").is_file():
        raise Mistake(f"{folder} holds no tokenizer.json; a GGUF file is of no use without its tokenizer")
    tokenizer = Tokenizer.load(folder)
    tokenizer.check_fits(model.config.vocab)
    vocabulary = read_vocabulary(tokenizer, model.config.vocab)
    stored = {key: (array, choose_type(key, array, kind)) for key, array in list_tensors(model, form)}
    check_rows({key: (array.shape, chosen) for key, (array, chosen) in stored.items()}, kind)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        writer = gguf.GGUFWriter(str(aside), form.arch)
        writer.add_name("model" if name.lower() in ("", "mistral") else name)
        form.describe(writer, model.config)
        writer.add_file_type(dtype)
        writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
        add_vocabulary(writer, vocabulary)
        for key, (array, chosen) in stored.items():
            number = gguf.GGMLQuantizationType[chosen]
            writer.add_tensor(key, gguf.quants.quantize(array, number), raw_dtype=number)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        apart = compare(gguf, aside, stored)
        os.replace(aside, path)
        return apart
    finally:
        aside.unlink(missing_ok=True)


def find_type(kind: str) -> int:
    """The number of a file type."""
    if kind not in TYPES:
        raise Mistake(f"--type {kind}: choose {', '.join(TYPES)}.{nearest(kind, TYPES)}")
    return TYPES[kind][1]


def find_form(model: Any) -> Form:
    """How a family is written; another one is refused."""
    if type(model) is GPT2:
        return Form("gpt2", GPT_2, describe_gpt2)
    if type(model) in (Llama, Mistral):
        if model.config.rope.kind != "default":
            raise Mistake(
                f"rope_type {model.config.rope.kind!r} is not written to GGUF, only the plain rotary positions"
            )
        return Form("llama", LLAMA, describe_llama)
    raise Mistake(
        f"a {type(model).__name__} is not written to GGUF, only LLaMA, Mistral and GPT-2; --to safetensors does"
    )


def describe_gpt2(writer: Any, config: Any) -> None:
    writer.add_context_length(config.context)
    writer.add_embedding_length(config.width)
    writer.add_block_count(config.depth)
    writer.add_feed_forward_length(config.hidden or 4 * config.width)
    writer.add_head_count(config.heads)
    writer.add_layer_norm_eps(config.eps)


def describe_llama(writer: Any, config: Any) -> None:
    size = config.head_size or config.width // config.heads
    window = vars(config).get("window")
    writer.add_context_length(min(config.context, window or config.context))
    writer.add_embedding_length(config.width)
    writer.add_block_count(config.depth)
    writer.add_feed_forward_length(config.hidden)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.kv_heads)
    writer.add_key_length(size)
    writer.add_value_length(size)
    writer.add_layer_norm_rms_eps(config.eps)
    writer.add_rope_dimension_count(size)
    writer.add_rope_freq_base(config.rope.theta)
    writer.add_vocab_size(config.vocab)


def add_vocabulary(writer: Any, found: Vocabulary) -> None:
    """The tokenizer's entries."""
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(found.cut)
    writer.add_token_list(found.tokens)
    writer.add_token_types(found.kinds)
    writer.add_token_merges(found.merges)
    for role, number in found.specials.items():
        getattr(writer, f"add_{role}_token_id")(number)
    writer.add_add_bos_token(found.adds_first)
    writer.add_add_space_prefix(found.spaced)
    if found.chat_template:
        writer.add_chat_template(found.chat_template)


def list_tensors(model: Any, form: Form) -> Iterator[tuple[str, np.ndarray]]:
    """(name in GGUF, numbers) of every parameter; tied matrices once."""
    heads = {"attn_q": getattr(model.config, "heads", 0), "attn_k": getattr(model.config, "kv_heads", 0)}
    for ours, tensor in model.state_dict().items():
        number = next((part for part in ours.split(".") if part.isdecimal()), "")
        pattern = ours.replace(f".{number}.", ".{}.", 1) if number else ours
        theirs = form.names[pattern].format(number)
        part = theirs.split(".")[-2]
        permuted = form.arch == "llama" and part in heads
        yield theirs, (permute_rows(tensor, heads[part]) if permuted else tensor).float().contiguous().numpy()


def permute_rows(w: Tensor, heads: int) -> Tensor:
    """Rows i and i + k/2 of each head become the rows 2i and 2i + 1."""
    return w.unflatten(0, (heads, 2, -1)).transpose(1, 2).flatten(0, 2)


def choose_type(key: str, array: np.ndarray, kind: str) -> str:
    """ggml's type of a tensor: vectors keep their precision."""
    if array.ndim < 2:
        return "F32"
    return ALWAYS.get(key) or KEPT.get(kind, {}).get(key) or TYPES[kind][0]


def check_rows(shapes: dict[str, tuple[tuple[int, ...], str]], kind: str) -> None:
    """Rows in blocks of 32 must be whole blocks."""
    for key, (shape, chosen) in shapes.items():
        if chosen.startswith("Q") and shape[-1] % BLOCK:
            raise Mistake(
                f"--type {kind} packs {BLOCK} numbers of a row together, and {key} has rows of {shape[-1]}, "
                f"no multiple; choose f16 or f32, or sizes that {BLOCK} divides"
            )


def compare(gguf: Any, path: Path, stored: dict[str, tuple[np.ndarray, str]]) -> float:
    """Read the file again: the largest error of a tensor, in units of what its type may round."""
    reader = gguf.GGUFReader(str(path))
    found = {tensor.name: tensor for tensor in reader.tensors}
    if set(found) != set(stored):
        raise RuntimeError(f"{path}: other tensors than were written")
    worst = 0.0
    for key, (array, chosen) in stored.items():
        back = gguf.quants.dequantize(found[key].data, found[key].tensor_type).reshape(array.shape)
        if chosen == "F32":
            if not np.array_equal(back, array):
                raise RuntimeError(f"{path}: {key} was not stored as it is")
            continue
        rows = array.reshape(-1, BLOCK) if chosen.startswith("Q") else array.reshape(-1, 1)
        largest = np.abs(rows).max(axis=1, keepdims=True)
        errors = np.abs(back.reshape(rows.shape) - rows) / np.maximum(largest * WITHIN[chosen], 2.0**-24)
        worst = max(worst, float(errors.max()))
    return worst
