"""Writers: pieces, the end token, beam search."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from descend.errors import Mistake
from descend.inference.writer import Writer
from descend.models.t5 import T5, TINY
from descend.sampling.beam import beam_search
from descend.sampling.decoder import begin
from descend.sampling.filters import GREEDY, TokenSampler
from descend.sampling.generate import generate
from descend.text.tokenizer import Tokenizer
from tests.close import close

RUN = Path(__file__).parents[1] / "verbs" / "data" / "last_release" / "gpt2-pydoc"


def test_pieces_are_the_samplers_tokens() -> None:
    writer = Writer.open(RUN)
    model, tokenizer = writer.trained.model, writer.tokenizer
    sampler = TokenSampler(0.8)
    with torch.inference_mode():
        (tokens,) = generate(model.decoder(), [tokenizer.encode("The for")], 12, sampler, seed=3)
    whole = tokenizer.decode(tokens)
    written = "".join(writer.write("The for", 12, sampler, seed=3))
    assert written
    assert whole.startswith(written)  # a character that is not complete yet is held back


def test_beam_search_is_that_of_the_decoder() -> None:
    writer = Writer.open(RUN)
    with torch.inference_mode():
        best = beam_search(writer.trained.model.decoder(), [writer.tokenizer.encode("The")], 3, 6)[0][0]
    assert writer.search("The", 6, 3) == writer.tokenizer.decode(best.tokens)


def test_a_source_is_read_with_its_end(tmp_path: Path) -> None:
    tokenizer = Tokenizer.bpe("some words of a text " * 9, 270)
    assert tokenizer.end is not None
    torch.manual_seed(0)
    T5(replace(TINY, vocab=tokenizer.vocab, end=tokenizer.end)).save_pretrained(tmp_path)
    tokenizer.save(tmp_path)
    writer = Writer.open(tmp_path)
    model, source = writer.trained.model, torch.tensor([[*tokenizer.encode("some words"), tokenizer.end]])
    with torch.inference_mode():
        decoder = writer.begin("some words").decoder
        oracle = model.decoder(source, torch.ones_like(source) > 0)
        ours, theirs = (begin(each, [[model.config.start]], 4) for each in (decoder, oracle))
    close(ours, theirs)
    with pytest.raises(Mistake, match="T5 answers a source text: give one"):
        writer.begin("")


def test_without_a_prompt_it_begins_with_the_end_of_a_text() -> None:
    writer = Writer.open(RUN)
    assert writer.begin("").ids == ([] if writer.tokenizer.end is None else [writer.tokenizer.end])
    assert list(writer.write("The", 3, GREEDY)) == list(writer.write("The", 3, GREEDY))


def test_a_model_that_does_not_write_is_refused() -> None:
    with pytest.raises(Mistake, match="Generator, which does not write text"):
        Writer.open(RUN.parent / "gan-mixture")
