"""The books' papers, found by author and title, and each leading to what is built of it."""

from __future__ import annotations

import pytest

from descend.catalog.claims import claims
from descend.catalog.references import Reference, references, references_of
from descend.catalog.search import search
from descend.catalog.systems import systems

SLUG = "notation-glossary-bibliography"
DLN = [r for r in references() if r.book == "DLN"]


@pytest.mark.system(SLUG, "references")
@pytest.mark.system(SLUG)
def test_every_number_is_there_once_and_names_a_system() -> None:
    assert [r.number for r in DLN] == list(range(1, 142))
    assert len(references()) == 152
    for reference in references():
        assert reference.systems
        assert all(slug in systems() for slug in reference.systems), reference
        assert 1960 < reference.year < 2026
        assert len(reference.authors) > 4
        assert len(reference.title) > 8


@pytest.mark.system(SLUG, "references")
def test_the_systems_of_the_papers_are_built() -> None:
    """Nine of ten or more; what is open stays visible in the coverage."""
    named = {slug for reference in references() for slug in reference.systems}
    assert len(named & claims().keys()) >= 0.9 * len(named)


@pytest.mark.system(SLUG, "references")
@pytest.mark.parametrize("reference", references(), ids=lambda r: f"{r.book}-{r.number}")
def test_a_paper_is_found_by_its_author_and_title(reference: Reference) -> None:
    surname = reference.authors.replace(" et al.", "").split(" and ")[0].split(" ")[-1]
    found = [system.slug for system in search(f"{surname} {reference.title}", 10)]
    assert set(found) & set(reference.systems), found


@pytest.mark.system(SLUG, "reference-errata")
def test_what_is_wrong_with_the_list_is_noted() -> None:
    by_number = {r.number: r for r in DLN}
    assert "Ioffe" in by_number[15].note
    assert by_number[27].title == by_number[29].title
    assert len(references_of("lenet")) == 1
    assert by_number[127].systems == ("simsiam", "byol")


@pytest.mark.system(SLUG, "later-papers")
@pytest.mark.parametrize(
    ("system", "words"),
    [
        ("dpo", "Direct preference"),
        ("kaplan-power-laws", "Kaplan"),
        ("chinchilla-allocation", "compute-optimal"),
        ("emergent-abilities", "Wei"),
        ("roberta", "oberta"),
        ("rlhf", "follow instructions"),
    ],
)
def test_the_transformer_books_papers(system: str, words: str) -> None:
    assert any(words in str(reference) for reference in references_of(system))
