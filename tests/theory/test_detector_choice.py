from __future__ import annotations

from itertools import product

import pytest

from descend.theory.detector_choice import USE_CASES, find_conflicts, recommend

ANSWERS = list(product((False, True), (False, True), (1_000, 1_000_000), (False, True), (False, True)))


@pytest.mark.system("detector-recommender")
@pytest.mark.system("detector-recommender", "tree")
@pytest.mark.parametrize(("realtime", "gpu", "labels", "small", "maps"), ANSWERS)
def test_every_answer(realtime: bool, gpu: bool, labels: int, small: bool, maps: bool) -> None:
    first, third, fourth = recommend(realtime, gpu, labels, small, maps)
    if realtime:
        assert first.question.startswith("more than 30")
        assert first.models == ("YOLO",)
        assert (first.advice == "") is gpu
    else:
        assert first.question.startswith("more than 100,000")
        assert first.models == (("DETR", "Swin") if labels > 100_000 else ("YOLO", "DETR"))
    assert third.models == (("DETR", "Swin") if small else ("YOLO",))
    assert fourth.models == (("DETR", "ViT") if maps else ("YOLO",))


@pytest.mark.system("detector-recommender", "conflicts")
def test_conflicts_are_shown() -> None:
    """Real time and small objects: YOLO and DETR at once. Both stand, and the conflict is told."""
    found = recommend(True, True, 1_000, True, False)
    assert [r.models for r in found] == [("YOLO",), ("DETR", "Swin"), ("YOLO",)]
    assert [(a.question[:9], b.question[:5]) for a, b in find_conflicts(found)] == [
        ("more than", "small"),
        ("small obj", "atten"),
    ]
    assert find_conflicts(recommend(True, True, 1_000, False, False)) == []
    clashes = [bool(find_conflicts(recommend(*answers))) for answers in ANSWERS]
    assert sum(clashes) == 22


@pytest.mark.system("detector-recommender", "use-cases")
def test_the_use_cases_against_the_table() -> None:
    """Driving recommends a model that the book's own table puts below its need; the others do not."""
    assert {case.name: case.contradicted() for case in USE_CASES} == {
        "autonomous driving": ["YOLO-v8l"],
        "surveillance": [],
        "medical images": [],
        "mobile": [],
    }
    fitting = {row.name for row in USE_CASES[3].fitting()}
    assert fitting == {"YOLO-v8n", "YOLO-v8s", "YOLO-v8m", "YOLO-v8l", "DETR", "Swin-T DETR"}
