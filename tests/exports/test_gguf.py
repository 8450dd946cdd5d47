"""Language models as GGUF: transformers opens the files and computes the same logits; what has no form is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn

from descend.errors import Mistake
from descend.exports.contents import open_contents
from descend.exports.gguf import choose_type, permute_rows, write_gguf
from descend.models import gpt2, llama, mistral
from descend.models.bert import TINY as BERT_TINY
from descend.models.bert import Bert
from tests.close import close

VOCAB = 300
SMALL = {
    "llama": (llama.Llama, llama.LlamaConfig(VOCAB, 24, 64, 2, 4, 2, hidden=96)),
    "tied": (llama.Llama, llama.LlamaConfig(VOCAB, 24, 64, 1, 2, 2, hidden=96, tied=True)),
    "mistral": (mistral.Mistral, mistral.MistralConfig(VOCAB, 24, 64, 2, 4, 2, hidden=96, window=16)),
    "gpt2": (gpt2.GPT2, replace(gpt2.TINY, vocab=VOCAB, context=24, width=64, heads=4)),
}


def build(name: str) -> Any:
    """Weights of which none is near 0, so that a place that is left out or permuted is seen."""
    kind, config = SMALL[name]
    torch.manual_seed(0)
    model = kind(config).eval()
    for p in model.parameters():
        nn.init.normal_(p, 1.0 if p.dim() == 1 else 0.0, 0.2)
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A byte-level BPE of 256 letters and some pairs."""
    where = tmp_path_factory.mktemp("tokenizer")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {word: n for n, word in enumerate([*letters, *(letters[64] + b for b in letters[64:])][:VOCAB])}
    inner = Tokenizer(models.BPE(words, [(word[0], word[1]) for word in words if len(word) == 2]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.save(str(where / "tokenizer.json"))
    return where


def open_in_transformers(path: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(str(path.parent), gguf_file=path.name, dtype=torch.float32).eval()


TOKENS = torch.randint(VOCAB, (2, 12), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", list(SMALL))
def test_transformers_computes_the_same_logits(name: str, folder: Path, tmp_path: Path) -> None:
    model = build(name)
    assert write_gguf(model, folder, tmp_path / "m.gguf", "f32", name) == 0
    theirs = open_in_transformers(tmp_path / "m.gguf")
    with torch.no_grad():
        close(model(TOKENS), theirs(TOKENS).logits, loosen=5)


@pytest.mark.parametrize("kind", ["f16", "q8_0", "q4_0"])
def test_fewer_bits_are_the_packages_own(kind: str, folder: Path, tmp_path: Path) -> None:
    """Each matrix is what gguf's rounding makes of it, and the logits are those of a model with such matrices."""
    model = build("llama")
    assert 0 < write_gguf(model, folder, tmp_path / "m.gguf", kind) <= 1.01
    theirs = open_in_transformers(tmp_path / "m.gguf")
    found = {tensor.name: tensor for tensor in gguf.GGUFReader(str(tmp_path / "m.gguf")).tensors}
    for layer, name in ((model.blocks[1].mlp.down, "blk.1.ffn_down.weight"), (model.head, "output.weight")):
        number = gguf.GGMLQuantizationType[choose_type(name, layer.weight.detach().numpy(), kind)]
        packed = gguf.quants.quantize(layer.weight.detach().numpy(), number)
        assert (found[name].data == packed).all()
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, nn.Linear | nn.Embedding):
                name = {model.head: "output.weight", model.embed: "token_embd.weight"}.get(layer, "")
                number = gguf.GGMLQuantizationType[choose_type(name, layer.weight.numpy(), kind)]
                rounded = gguf.quants.dequantize(gguf.quants.quantize(layer.weight.numpy(), number), number)
                layer.weight.copy_(torch.from_numpy(rounded).view_as(layer.weight))
        close(model(TOKENS), theirs(TOKENS).logits, loosen=5)


def test_rows_of_a_head_are_woven() -> None:
    """x_i and x_{i + k/2} become neighbours: two heads of four rows."""
    w = torch.arange(8.0)[:, None]
    assert permute_rows(w, 2).flatten().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def test_the_file_says_what_the_model_is(folder: Path, tmp_path: Path) -> None:
    """Sizes and tokenizer; a window is written as the context; inspect reads it."""
    write_gguf(build("mistral"), folder, tmp_path / "m.gguf", "q8_0", "small")
    found = open_contents(tmp_path / "m.gguf")
    said = found.metadata
    assert said["general.architecture"] == "llama"
    assert said["llama.context_length"] == 16
    assert said["llama.attention.head_count_kv"] == 2
    assert said["tokenizer.ggml.pre"] == "gpt-2"
    assert {t.dtype for t in found.tensors} == {"F32", "Q8_0"}
    assert len(found.tensors) == 2 * 9 + 3


def test_what_has_no_form_is_refused(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    model = build("llama")
    with pytest.raises(Mistake, match=r"--type q8_1: choose f32, f16, q8_0, q4_0\. Did you mean .*q8_0"):
        write_gguf(model, folder, path, "q8_1")
    with pytest.raises(Mistake, match="a Bert is not written to GGUF, only LLaMA, Mistral and GPT-2; --to safetensors"):
        write_gguf(Bert(BERT_TINY), folder, path)
    with pytest.raises(Mistake, match=r"holds no tokenizer\.json"):
        write_gguf(model, tmp_path, path)
    narrow = llama.Llama(llama.LlamaConfig(VOCAB, 24, 48, 1, 2, 2, hidden=96))
    with pytest.raises(Mistake, match=r"packs 32 numbers of a row together, and token_embd\.weight has rows of 48"):
        write_gguf(narrow, folder, path, "q8_0")
    stretched = llama.Llama(replace(model.config, rope=replace(model.config.rope, kind="linear", factor=2.0)))
    with pytest.raises(Mistake, match="rope_type 'linear' is not written to GGUF"):
        write_gguf(stretched, folder, path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["characters", "words"])
def test_another_tokenizer_is_refused(kind: str, tmp_path: Path) -> None:
    made = Tokenizer(models.WordLevel({"a": 0}, "a") if kind == "words" else models.BPE({"a": 0}, []))
    made.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(Mistake, match=r"train with --data\.tokenizer bpe|GGUF has no name for"):
        write_gguf(build("llama"), tmp_path, tmp_path / "m.gguf")


def test_a_damaged_copy_is_not_left_behind(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written is read again; where it differs nothing is left."""
    monkeypatch.setattr(gguf.quants, "dequantize", lambda data, kind: data * 0 + 1)
    with pytest.raises(RuntimeError, match="was not stored as it is"):
        write_gguf(build("llama"), folder, tmp_path / "m.gguf")
    assert list(tmp_path.iterdir()) == []
