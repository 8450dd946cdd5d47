"""descend coverage: the counts agree with the claims and the record."""

from __future__ import annotations

import json

import pytest

from descend.catalog.claims import claims
from descend.catalog.coverage import Count, Standing, count
from descend.catalog.systems import families, systems
from descend.errors import Mistake
from descend.verbs.coverage import command, coverage


def test_the_json_has_exactly_this_shape(capsys: pytest.CaptureFixture[str]) -> None:
    command(json=True)
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["families", "systems"]
    assert list(found["families"]) == list(families())
    assert list(found["systems"]) == list(systems())
    assert found["families"]["losses"]["systems"] == 18
    assert {tuple(f) for f in found["families"].values()} == {("systems", "claimed", "tested", "proven")}
    assert {tuple(s) for s in found["systems"].values()} == {("claimed", "tested", "proven")}
    assert "descend/ops/attention/dot_product.py:1" in found["systems"]["causal-mask"]["claimed"]


def test_families_sum_up_their_systems() -> None:
    found = coverage()
    assert sum(f["systems"] for f in found["families"].values()) == len(systems())
    assert sum(f["claimed"] for f in found["families"].values()) == len(claims().keys() & systems().keys())
    assert sum(f["proven"] for f in found["families"].values()) == sum(s["proven"] for s in found["systems"].values())


def test_tested_is_not_proven_and_a_claim_is_neither() -> None:
    standings = {
        "a": Standing(("x.py:1",), ("t1",), True),
        "b": Standing(("x.py:1",), ("t2",), False),
        "c": Standing(("x.py:1",), (), False),
        "d": Standing((), (), False),
    }
    assert [s.state for s in standings.values()] == ["proven", "tested", "claimed", "not built yet"]
    assert count(standings) == Count(systems=4, claimed=3, tested=2, proven=1)


def test_one_family_is_shown_system_by_system(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(coverage("generation")["families"]) == ["generation"]
    command(family="generation")
    said = capsys.readouterr().out
    assert "beam-search" in said
    assert "causal-mask" not in said


def test_the_table_ends_with_the_sum(capsys: pytest.CaptureFixture[str]) -> None:
    command()
    last = capsys.readouterr().out.rstrip().splitlines()[-1].split()
    assert last[:2] == ["all", "598"]


def test_an_unknown_family_is_a_mistake() -> None:
    with pytest.raises(Mistake, match="'losses'"):
        coverage("loses")
