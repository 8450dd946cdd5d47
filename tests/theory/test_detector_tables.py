from __future__ import annotations

import pytest

from descend.errors import Mistake
from descend.theory.detector_tables import (
    COMPARISON,
    FAMILIES,
    MATRIX,
    PRINTED,
    SUMMARY,
    choose_printed,
    find_contradictions,
    find_disputed,
    find_printed,
    look_up,
)


@pytest.mark.system("detector-benchmarks", "criteria")
def test_the_matrix_answers_by_criterion() -> None:
    assert look_up("small objects") == {"YOLO": "weak", "DETR": "strong", "ViT-Det": "strong"}
    assert all(len(row) == len(FAMILIES) for row in MATRIX.values())
    with pytest.raises(Mistake, match=r"no criterion 'colour'.*small objects"):
        look_up("colour")


@pytest.mark.system("detector-benchmarks", "tables")
def test_where_the_book_contradicts_itself() -> None:
    found = find_contradictions()
    assert len(found) == 5
    for name in ("YOLO-v8m has 50.2", "YOLO-v8l has 52.9", "YOLO-v8l has 15", "300 images/s", "24.2"):
        assert sum(name in line for line in found) == 1
    assert find_printed("DETR").map == 45.0
    with pytest.raises(Mistake, match="no model 'SSD'"):
        find_printed("SSD")


@pytest.mark.system("detector-recommender", "requirements")
def test_models_that_meet_requirements() -> None:
    """Against a loop over the table; limits of latency and size are not to be reached."""
    for fps in (0, 15, 30, 81):
        for latency in (20, 50, 1000):
            for megabytes in (20, 100, 1000):
                names = [m.name for m in choose_printed(fps, latency, megabytes)]
                right = [
                    m.name for m in PRINTED if m.fps >= fps and 1000 / m.fps < latency and 4 * m.parameters < megabytes
                ]
                assert names == right
    assert [m.name for m in choose_printed(fps=30)] == ["YOLO-v8n", "YOLO-v8s", "YOLO-v8m"]


@pytest.mark.system("detector-comparison-lab", "claims")
def test_the_comparisons_are_data_and_five_cells_are_disputed() -> None:
    assert len(COMPARISON) == 8
    assert all(len(row) == 2 for row in COMPARISON.values())
    assert len(SUMMARY) == 5
    assert all(len(row) == 3 for row in SUMMARY.values())
    found = find_disputed()
    assert [dispute.claim.partition(":")[0] for dispute in found] == ["25.5", "25.5", "25.5", "26.5", "25.5"]
    assert "YOLO-v8m, YOLO-v8l" in found[2].against


@pytest.mark.system("detector-comparison-lab", "claims")
def test_a_dispute_needs_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUMMARY, "query start", ("none", "learned embeddings", "encoder features"))
    assert all("anchor-free" not in dispute.claim for dispute in find_disputed())
