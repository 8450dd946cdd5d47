"""What came with a folder is kept: a model that was loaded and saved is as useful as before, here and elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from descend.models import load
from descend.models.bert import BertConfig, BertForSequenceClassification
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from descend.weights.companions import goes_along
from descend.weights.labels import Labels


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """A folder as transformers writes it: weights, a tokenizer, and what is beside them."""
    from tokenizers import Tokenizer as Inner
    from tokenizers.models import WordPiece
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import BertConfig as PublicConfig
    from transformers import BertForSequenceClassification as PublicBert
    from transformers import PreTrainedTokenizerFast

    words = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "bad", "film")
    inner = Inner(WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    inner.pre_tokenizer = Whitespace()
    folder = tmp_path / "public"
    specials = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}
    PreTrainedTokenizerFast(tokenizer_object=inner, **specials).save_pretrained(folder)
    config = PublicConfig(
        vocab_size=len(words), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=16, id2label={0: "bad", 1: "good"}, label2id={"bad": 0, "good": 1},
    )  # fmt: skip
    torch.manual_seed(0)
    PublicBert(config).save_pretrained(folder)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    (folder / "README.md").write_text("# a model\n")
    return folder


def test_load_then_save_keeps_what_transformers_reads(public: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    load(public).save_pretrained(tmp_path / "again")
    text = "a good film"
    before, after = (AutoTokenizer.from_pretrained(folder) for folder in (public, tmp_path / "again"))
    assert len(after) == len(before) == 9
    assert after(text)["input_ids"] == before(text)["input_ids"] == [5, 6, 8]
    ids = torch.tensor([after(text)["input_ids"]])
    ours, theirs = (
        AutoModelForSequenceClassification.from_pretrained(folder) for folder in (tmp_path / "again", public)
    )
    assert ours.config.id2label == {0: "bad", 1: "good"}
    torch.testing.assert_close(ours(ids).logits, theirs(ids).logits, rtol=0, atol=0)
    assert json.loads((tmp_path / "again" / "1_Pooling" / "config.json").read_text())["pooling_mode_mean_tokens"]
    assert (tmp_path / "again" / "README.md").exists()
    again = load(tmp_path / "again")
    again.save_pretrained(tmp_path / "third")
    assert sorted(again.companions) == sorted(load(tmp_path / "third").companions) == sorted(load(public).companions)


def test_a_folder_of_ours_keeps_its_tokenizer_and_one_that_is_there_stays(tmp_path: Path) -> None:
    inputs = Inputs.extend(Tokenizer.bpe("good bad film story " * 20, 280), 16)
    config = BertConfig(inputs.tokenizer.vocab, 16, 8, 1, 2, 16, pad=inputs.pad, labels=Labels(("bad", "good")))
    BertForSequenceClassification(config).save_pretrained(tmp_path / "run")
    inputs.tokenizer.save(tmp_path / "run")
    (tmp_path / "run" / "state.json").write_text("{}")
    load(tmp_path / "run").save_pretrained(tmp_path / "copy")
    assert Tokenizer.load(tmp_path / "copy").encode("a good film") == inputs.tokenizer.encode("a good film")
    assert not (tmp_path / "copy" / "state.json").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "tokenizer.json").write_text("new")
    load(tmp_path / "run").save_pretrained(tmp_path / "other")
    assert (tmp_path / "other" / "tokenizer.json").read_text() == "new"


@pytest.mark.parametrize(
    ("name", "along"),
    [
        ("tokenizer.json", True),
        ("spiece.model", True),
        ("1_Pooling/config.json", True),
        ("LICENSE", True),
        ("config.json", False),
        ("checksums.json", False),
        ("model.safetensors", False),
        ("model.safetensors.index.json", False),
        ("pytorch_model.bin", False),
        (".gitattributes", False),
    ],
)
def test_weights_and_states_do_not_go_along(name: str, along: bool) -> None:
    assert goes_along(name) is along
