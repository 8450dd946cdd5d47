"""descend find: the right system first, whatever the spelling, at once and without torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from descend.errors import Mistake
from descend.verbs.find import command, find


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        ("grouped query", "grouped-query-attention"),
        ("gpt2", "gpt-2"),
        ("GPT-2", "gpt-2"),
        ("sdpa", "scaled-dot-product-attention"),
        ("crossentropy", "cross-entropy"),
        ("batch normalisation", "batch-norm"),
        ("kv cache", "kv-cache"),
        ("scaled dot product atention", "scaled-dot-product-attention"),
        ("causal masks", "causal-mask"),
        ("lora", "lora"),
    ],
)
def test_the_best_match_is_first(words: str, slug: str) -> None:
    assert find(words)[0].slug == slug


def test_a_word_of_an_entry_name_is_enough() -> None:
    assert {"cbow", "skip-gram"} <= {f.slug for f in find("word2vec")}


def test_it_says_where_the_code_is() -> None:
    [found] = find("causal mask", limit=1)
    assert "descend/ops/attention/dot_product.py:1" in found.at
    assert find("grouped query", limit=3)[0].family == "attention-transformers"
    assert len(find("attention", limit=3)) == 3


def test_the_command_prints_slug_name_family_and_place(capsys: pytest.CaptureFixture[str]) -> None:
    command(("causal", "mask"), limit=1)
    said = capsys.readouterr().out
    for part in ("causal-mask", "Causal mask", "attention-transformers", "descend/ops/attention/dot_product.py:1"):
        assert part in said
    assert "\x1b" not in said


@pytest.mark.parametrize("words", [(), ("",), ("zzzzqqqq",)])
def test_nothing_to_find_is_a_mistake(words: tuple[str, ...]) -> None:
    with pytest.raises(Mistake):
        command(words)


def test_it_needs_no_torch() -> None:
    code = "import sys; from descend.verbs.find import find; find('relu'); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
