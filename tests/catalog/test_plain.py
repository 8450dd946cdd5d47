"""Every system that is built is explained in two sentences of everyday words."""

from __future__ import annotations

import csv
import re

import pytest

from descend.catalog.claims import claims
from descend.catalog.plain import LONGEST, plain_words
from descend.catalog.systems import BOOKS, SPEC, families, systems

CODES = re.compile(
    rf"\b(?:{'|'.join(BOOKS)})\b|\b[A-Z0-9]+-[A-C]\.\d|\(\d+\.\d+\)|[Ee]rrat(?:um|a)|[Ff]ill-ins?\b(?!-)|named only"
)
SENTENCE = re.compile(r"[.!?](?=\s+[\"A-Z]|$)")


def faults(text: str) -> list[str]:
    """What a text has that a beginner should not meet."""
    found = [] if len(SENTENCE.findall(text)) == 2 and text.endswith(".") else ["not two sentences"]
    found += [f"longer than {LONGEST} characters"] if len(text) > LONGEST else []
    found += [f"an internal code: {code}" for code in CODES.findall(text)]
    found += ["lines or tabs"] if re.search(r"[\t\n]|  ", text) else []
    return found + (["no capital at the start"] if not text[:1].isupper() else [])


def test_every_system_that_is_built_has_its_two_sentences() -> None:
    missing = sorted(claims().keys() - plain_words().keys())
    assert not missing, f"write them in spec/plain/FAMILY.tsv: {missing}"


@pytest.mark.parametrize("slug", sorted(plain_words()))
def test_they_are_two_short_sentences_without_codes(slug: str) -> None:
    assert slug in systems()
    assert not faults(plain_words()[slug]), plain_words()[slug]


def test_no_text_serves_two_systems_and_each_stands_in_its_family() -> None:
    assert len(set(plain_words().values())) == len(plain_words())
    for path in (SPEC / "plain").glob("*.tsv"):
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        assert {row["system"] for row in rows} <= {s.slug for s in families()[path.stem]}
        assert len({row["system"] for row in rows}) == len(rows)


@pytest.mark.parametrize(
    "text",
    [
        "One sentence only.",
        "One. Two. Three.",
        "No full stop at the end. Really",
        "MF prints it wrongly. Use the other.",
        "See MF-B.27 for more. It is there.",
        "Ranges are an erratum. So it is.",
        "A" * 300 + ". Too long.",
    ],
)
def test_the_contract_notices(text: str) -> None:
    assert faults(text)
