from __future__ import annotations

import pytest

from descend.errors import Mistake
from descend.theory.detector_tables import (
    FAMILIES,
    MATRIX,
    PRINTED,
    choose_printed,
    find_contradictions,
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
