"""Taggers, masked language models and word vectors: what they answer, beside the model asked by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from descend.cli import main
from descend.errors import Mistake
from descend.inference import open_run
from descend.inference.blank_filler import BlankFiller
from descend.inference.nearest_words import NearestWords
from descend.inference.tagger import Tagger
from descend.models import load, with_head
from descend.models.bert import TINY as BERT_TINY
from descend.models.word_vectors import CBOW, GloVe, GloVeTriples, SkipGram, WordVectorsConfig
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from descend.weights.labels import Labels
from tests.close import close

WORDS = ("king", "queen", "man", "woman", "apple")


def save_encoder(folder: Path, head: str, context: int = 24) -> Inputs:
    """A tiny BERT with this head and random weights, and its tokenizer."""
    inputs = Inputs.extend(Tokenizer.bpe("the cat sat on the mat and the dog ran " * 9, 270), context)
    torch.manual_seed(0)
    config = replace(BERT_TINY, vocab=inputs.tokenizer.vocab, context=context, pad=inputs.pad)
    with_head(replace(config, labels=Labels(("NOUN", "OTHER", "VERB"))), head).save_pretrained(folder)
    inputs.tokenizer.save(folder)
    return inputs


def open_tagger(folder: Path) -> Tagger:
    found = open_run(folder)
    assert isinstance(found, Tagger)
    return found


def test_a_tagger_tags_every_word_by_its_first_token(tmp_path: Path) -> None:
    inputs = save_encoder(tmp_path, "ForTokenClassification")
    (answer,) = open_tagger(tmp_path).tag(["the cat sat."])
    assert [word for word, _, _ in answer.words] == ["the", "cat", "sat", "."]
    pieces = inputs.tokenizer.encode_many(["the", " cat", " sat", " ."])
    tokens = inputs.join([token for piece in pieces for token in piece]).tokens
    with torch.no_grad():
        p = load(tmp_path)(torch.tensor([tokens]))[0].softmax(dim=-1)
    at = 1
    for (_, tag, share), piece in zip(answer.words, pieces, strict=True):
        assert tag == ("NOUN", "OTHER", "VERB")[int(p[at].argmax())]
        close(share, float(p[at].max()))
        at += len(piece)


def test_a_long_text_is_tagged_to_its_end_and_texts_do_not_change_each_other(tmp_path: Path) -> None:
    save_encoder(tmp_path, "ForTokenClassification", context=8)
    tagger = open_tagger(tmp_path)
    text = "the cat sat on the mat and the dog ran on and on"
    long, short, none = tagger.tag([text, "the dog", ""])
    assert [word for word, _, _ in long.words] == text.split()
    (alone,) = tagger.tag(["the dog"])
    assert [(word, tag) for word, tag, _ in short.words] == [(word, tag) for word, tag, _ in alone.words]
    assert none.words == ()


def test_blanks_are_filled_with_the_most_likely_tokens(tmp_path: Path) -> None:
    inputs = save_encoder(tmp_path, "ForMaskedLM")
    filler = open_run(tmp_path)
    assert isinstance(filler, BlankFiller)
    first, second = filler.fill_text("the [MASK] sat on the <mask>")
    encode = inputs.tokenizer.encode
    tokens = inputs.join([*encode("the"), inputs.mask, *encode(" sat on the"), inputs.mask]).tokens
    with torch.no_grad():
        p = load(tmp_path)(torch.tensor([tokens]))[0].softmax(dim=-1)
    for answer, at in zip((first, second), [i for i, t in enumerate(tokens) if t == inputs.mask], strict=True):
        best = p[at].topk(3)
        close(torch.tensor([share for _, share in answer.classes[:3]]), best.values)
        assert answer.classes[0][0] == inputs.tokenizer.decode([int(best.indices[0])]).strip()
    (far,) = filler.fill_text("the cat sat on the mat and " * 9 + "[MASK] ran")
    assert far.classes
    with pytest.raises(Mistake, match=r"has no blank; write \[MASK\]"):
        filler.fill_text("the cat sat")


@pytest.mark.parametrize("kind", [SkipGram, CBOW, GloVe, GloVeTriples])
def test_neighbours_are_ranked_by_cosine(kind: type[SkipGram], tmp_path: Path) -> None:
    torch.manual_seed(0)
    kind(WordVectorsConfig(vocab=len(WORDS) + 1, width=4)).save_pretrained(tmp_path)
    Tokenizer.of_words(WORDS).save(tmp_path)
    found = open_run(tmp_path)
    assert isinstance(found, NearestWords)
    (answer,) = found.predict(["King"])
    e = torch.nn.functional.normalize(load(tmp_path).vectors().detach(), dim=1)
    cosine = {word: float(e[0] @ e[i]) for i, word in enumerate(WORDS) if i}
    assert [word for word, _ in answer.classes] == sorted(cosine, key=lambda word: -cosine[word])
    close(torch.tensor([c for _, c in answer.classes]), torch.tensor(sorted(cosine.values(), reverse=True)))
    with pytest.raises(Mistake, match=r"the word 'quen' has no vector\. Did you mean 'queen'"):
        found.predict(["quen"])


def test_the_command_prints_tags_words_and_neighbours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_encoder(tmp_path / "tags", "ForTokenClassification")
    save_encoder(tmp_path / "blanks", "ForMaskedLM")
    SkipGram(WordVectorsConfig(vocab=len(WORDS) + 1, width=4)).save_pretrained(tmp_path / "words")
    Tokenizer.of_words(WORDS).save(tmp_path / "words")
    for folder, asked, lines in (("tags", "the cat", 3), ("blanks", "the [MASK] sat", 4), ("words", "king", 4)):
        assert main(["predict", str(tmp_path / folder), asked, "--top", "3"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == lines
