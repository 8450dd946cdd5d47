"""Every lab says what it tests, where that stands in the books, what it predicts and what would refute it."""

from __future__ import annotations

import re

import pytest

from descend.catalog.systems import entries
from descend.labs import claim, names, open_lab
from descend.labs._evidence import Prediction, list_predictions
from proofs import labs as recording

LONGEST = 48  # letters of the name of an effect: it stands in a table
MINUTE = 60
LONGER = {
    "beit-few-labels": "3,000 steps of pre-training: after 1,200, with more labels, nothing was gained",
}  # labs that need up to two minutes, with the reason
CHANGED = re.compile(r"[Cc]hanged after a first|[Aa]fter a first (run|recording)")


@pytest.mark.parametrize("name", names())
def test_a_lab_keeps_the_contract(name: str) -> None:
    lab = open_lab(name)
    assert lab.ENTRIES, "the entries of the catalogue that it tests"
    assert set(lab.ENTRIES) <= set(entries())
    assert claim(name) == lab.CLAIM
    for said in (lab.CLAIM, lab.PRINTED, lab.SCOPE):
        assert len(said) > 15, said
    assert lab.CLAIM.endswith(".")
    assert 0 < lab.BUDGET <= (2 * MINUTE if name in LONGER else MINUTE)
    assert all(callable(getattr(lab, part)) for part in ("measure", "effects", "figure"))
    assert not hasattr(lab, "verdict"), "predictions are judged by _evidence.py alone"
    if CHANGED.search(lab.__doc__ or ""):
        assert lab.RETUNED, "what was changed after a first verdict is shown on the page"


def test_only_labs_that_need_longer_are_excepted() -> None:
    assert all(open_lab(name).BUDGET > MINUTE for name in LONGER), "delete those that need a minute only"


@pytest.mark.parametrize("name", names())
def test_predictions_are_stated(name: str) -> None:
    lab = open_lab(name)
    assert lab.PREDICTIONS
    assert all(isinstance(prediction, Prediction) for prediction in list_predictions(lab))
    for part in ("PREDICTIONS", "CONTROLS"):
        named = [prediction.effect for prediction in getattr(lab, part, ())]
        assert len(set(named)) == len(named), "an effect is predicted once"
        assert max(map(len, named), default=0) <= LONGEST
    for prediction in list_predictions(lab):
        assert len(prediction.note) >= 8, f"{prediction.effect}: what it is, and what would refute it"
        assert prediction.bounds() == tuple(sorted(prediction.bounds()))


def test_the_record_is_judged_by_the_labs_as_they_are() -> None:
    record = recording.read(recording.HERE)
    stale = {}
    for name, entry in record.items():
        if name in names() and recording.stands(entry, name):
            verdict = recording.judge_entry(name, entry)["verdict"]
            if verdict != entry["verdict"]:
                stale[name] = (entry["verdict"], verdict)
    assert not stale, "python -m proofs.labs --judge"
