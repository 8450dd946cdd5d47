"""descend find: the right system first, whatever the spelling, at once and without torch."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from descend.catalog.claims import PACKAGE
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


@pytest.mark.parametrize("words", ["byte-pair encoding", "Byte Pair Encoding", "BPE"])
def test_what_only_shares_a_common_word_is_left_out(words: str) -> None:
    found = [f.slug for f in find(words)]
    assert found[0] == "bpe"
    assert not {"rope", "one-hot-words", "sinusoidal-positional-encoding"} & set(found)


@pytest.mark.parametrize(
    ("words", "first", "call"),
    [
        ("early stopping flag", "--patience", "descend train RECIPE --patience"),
        ("attention scale lab", "attention-scale", "descend lab attention-scale"),
        ("gpt2-pydoc", "gpt2-pydoc", "descend train gpt2-pydoc"),
        ("resume", "resume", "descend resume --help"),
        ("why divide by sqrt d", "attention-scaling-analysis", "descend explain attention-scaling-analysis"),
        ("ADAM", "adam", "descend explain adam"),
        ("Nesterov", "nesterov-momentum", "descend explain nesterov-momentum"),
    ],
)
def test_also_flags_labs_recipes_and_verbs(words: str, first: str, call: str) -> None:
    found = find(words)[0]
    assert (found.slug, found.call) == (first, call)


def test_the_flag_stands_below_the_system(capsys: pytest.CaptureFixture[str]) -> None:
    command(("early", "stopping"))
    said = capsys.readouterr().out
    assert said.index("early-stopping") < said.index("--patience")
    assert re.search(r"descend train RECIPE --patience +descend/engine/loop.py:\d+", said)


def test_a_word_of_an_entry_name_is_enough() -> None:
    assert {"cbow", "skip-gram"} <= {f.slug for f in find("word2vec")}


def line_of(path: str, start: str) -> str:
    """path:line of the first line that starts so."""
    lines = (PACKAGE.parent / path).read_text(encoding="utf-8").splitlines()
    return f"{path}:{next(i for i, line in enumerate(lines, 1) if line.startswith(start))}"


def test_it_says_where_the_code_is() -> None:
    [found] = find("causal mask", limit=1)
    assert found.at[0] == line_of("descend/ops/attention/dot_product.py", "def causal_mask")
    assert find("grouped query", limit=3)[0].family == "attention-transformers"
    assert len(find("attention", limit=3)) == 3


def test_the_command_prints_slug_name_family_and_place(capsys: pytest.CaptureFixture[str]) -> None:
    command(("causal", "mask"), limit=1)
    said = capsys.readouterr().out
    place = line_of("descend/ops/attention/dot_product.py", "def causal_mask")
    for part in ("causal-mask", "Causal mask", "attention-transformers", place):
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
