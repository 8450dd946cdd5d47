"""The catalogue is one whole: claims name real systems, examples exist, and every set-aside has a reason."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from descend.catalog.claims import PACKAGE, Claim, claims, claims_in, without_claims
from descend.catalog.proof import proofs
from descend.catalog.run import load_all_examples, load_examples
from descend.catalog.systems import entries, examples, families, systems

SOURCE = '''"""A file.

Systems: bpe, gpt-2,
    softmax
"""
import nowhere_at_all


class A:
    """A class.

    Systems: relu
    """

    def f(self):
        """The word Systems: in a sentence claims nothing."""

        def g():
            """Systems: tanh"""
'''


def test_claims_are_read_from_every_docstring_without_importing() -> None:
    found = [(c.slug, c.at, c.symbol) for c in claims_in(SOURCE, "descend/x.py")]
    assert found == [
        ("bpe", "descend/x.py:1", ""),
        ("gpt-2", "descend/x.py:1", ""),
        ("softmax", "descend/x.py:1", ""),
        ("relu", "descend/x.py:9", "A"),
        ("tanh", "descend/x.py:18", "A.f.g"),
    ]


def test_the_claim_line_is_left_out_for_readers() -> None:
    assert without_claims("A.\n\nSystems: bpe,\n  relu\n\nMore.").split() == ["A.", "More."]


def test_every_claim_names_a_system() -> None:
    unknown = [claim for found in claims().values() for claim in found if claim.slug not in systems()]
    assert not unknown, [f"{claim.at} claims {claim.slug!r}" for claim in unknown]


def test_only_reads_what_is_asked_for() -> None:
    [causal] = claims(only={"causal-mask"}).keys() or ["nothing"]
    assert causal == "causal-mask"
    assert claims(only={"causal-mask"})["causal-mask"] == claims()["causal-mask"]


def test_a_claim_points_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "x.py").write_text('"""X.\n\nSystems: bpe\n"""\n', encoding="utf-8")
    assert claims(tmp_path / "pack") == {"bpe": [Claim("bpe", "pack/x.py", 1, "")]}
    assert (PACKAGE.parent / claims()["causal-mask"][0].path).exists()


def test_the_list_is_whole() -> None:
    assert len(systems()) == 598
    assert len(families()) == 37
    assert Counter(e for s in systems().values() for e in s.entries) == Counter(entries().keys())
    assert len(examples()) == 959
    assert [e.id for e in examples().values() if e.system is None] == ["MF-31.1-chapter-numbers"]
    assert all(entry.places and entry.defines for entry in entries().values())


@pytest.mark.parametrize(
    ("worked", "slug"),
    [
        ("DLN-TextData-onehot-king", "one-hot-words"),
        ("DLN-LSTM-gradient-path", "lstm-gradient-highway"),
        ("S940-5.6-gpt3-parameters", "gpt"),
    ],
)
def test_an_example_finds_its_system(worked: str, slug: str) -> None:
    assert examples()[worked].system == slug


def test_every_written_example_is_in_its_family_once() -> None:
    computed = [(family, worked) for family in families() for worked in load_examples(family)[0]]
    strangers = [worked for _, worked in computed if worked not in examples()]
    assert not strangers
    assert [k for k, n in Counter(worked for _, worked in computed).items() if n > 1] == []
    for family, worked in computed:
        slug = examples()[worked].system
        assert slug is not None, worked
        assert systems()[slug].family == family, f"{worked} belongs to {systems()[slug].family}"


def test_every_example_of_a_proven_system_is_computed_or_set_aside() -> None:
    computed, aside = load_all_examples()
    proven = {slug for slug, proof in proofs().items() if proof.proves()}
    assert proven, "the record of proof is empty"
    theirs = [e for e in examples().values() if e.system in proven]
    assert [f"{e.id} of {e.system}" for e in theirs if e.id not in computed and e.id not in aside] == []


def test_what_is_set_aside_has_a_reason_and_is_not_computed() -> None:
    computed, aside = load_all_examples()
    for name, reason in aside.items():
        worked, _, key = name.partition(":")
        assert worked in examples(), name
        assert len(reason.split()) > 3, f"{name}: a reason is a sentence"
        assert not key or key in examples()[worked].recomputed, name
        assert bool(key) == (worked in computed), f"{name}: set aside and computed, or a key of nothing"
