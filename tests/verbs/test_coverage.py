"""descend coverage: the counts agree with the claims and the record."""

from __future__ import annotations

import json

import pytest

from descend.catalog.claims import claims
from descend.catalog.coverage import Count, Standing, count
from descend.catalog.demands import demands
from descend.catalog.proof import Proof
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
    assert {tuple(f) for f in found["families"].values()} == {("systems", "claimed", "core", "whole")}
    assert {tuple(s) for s in found["systems"].values()} == {("claimed", "tests", "core", "whole", "demands", "open")}
    assert "descend/ops/attention/dot_product.py:1" in found["systems"]["causal-mask"]["claimed"]


def test_families_sum_up_their_systems() -> None:
    found = coverage()
    assert sum(f["systems"] for f in found["families"].values()) == len(systems())
    assert sum(f["claimed"] for f in found["families"].values()) == len(claims().keys() & systems().keys())
    for name in ("core", "whole"):
        assert sum(f[name] for f in found["families"].values()) == sum(s[name] for s in found["systems"].values())


def test_core_is_not_whole_and_a_claim_is_neither() -> None:
    both = Proof(core=("t1",), demands={"form": ("t2",)})
    at = ("x.py:1",)
    standings = {
        "every demand": Standing(at, both, ("form",)),
        "one open": Standing(at, both, ("form", "speed")),
        "no list": Standing(at, both, ()),
        "a demand and no core": Standing(at, Proof(demands={"form": ("t2",)}), ("form",)),
        "failed demand": Standing(at, Proof(("t1",), {"form": ("t2",)}, failed=("t2",)), ("form",)),
        "failed core": Standing(at, Proof(("t1",), failed=("t1",)), ()),
        "claimed": Standing(at, Proof(), ("form",)),
        "nothing": Standing((), Proof(), ()),
    }
    states = ["whole", "core", "core", "tested", "tested", "tested", "claimed", "not built yet"]
    assert [s.state for s in standings.values()] == states
    assert [s.open for s in standings.values()][:2] == [(), ("speed",)]
    assert count(standings) == Count(systems=8, claimed=7, core=4, whole=1)


def test_one_family_is_shown_system_by_system(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(coverage("generation")["families"]) == ["generation"]
    command(family="generation")
    said = capsys.readouterr().out
    assert "beam-search" in said
    assert "causal-mask" not in said


def test_open_demands_are_listed_with_what_must_be_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("descend.catalog.coverage.proofs", dict)
    command(family="optimizers", open=True)
    said = " ".join(capsys.readouterr().out.split())
    for demand in demands()["adam"].values():
        assert demand.name in said
    assert next(iter(demands()["adam"].values())).text[:20] in said


def test_the_table_ends_with_the_sum(capsys: pytest.CaptureFixture[str]) -> None:
    command()
    last = capsys.readouterr().out.rstrip().splitlines()[-1].split()
    assert last[:2] == ["all", "598"]


def test_an_unknown_family_is_a_mistake() -> None:
    with pytest.raises(Mistake, match="'losses'"):
        coverage("loses")
