"""How many threads a run takes."""

from __future__ import annotations

import pytest
from torch import nn

from descend.engine import hardware

SMALL, LARGE = nn.Linear(4, 4), nn.Linear(4000, 4000)


@pytest.mark.parametrize(
    ("wanted", "model", "variables", "expected"),
    [
        (3, SMALL, {}, 3),
        (9, SMALL, {}, 4),
        (0, SMALL, {}, 1),
        (0, LARGE, {}, 4),
        (0, LARGE, {"OMP_NUM_THREADS": "2"}, 2),
        (0, LARGE, {"OMP_NUM_THREADS": "2,1"}, 2),
        (0, LARGE, {"OMP_NUM_THREADS": "many"}, 4),
        (3, LARGE, {"OMP_NUM_THREADS": "2"}, 3),
        (0, LARGE, {"OMP_NUM_THREADS": "1", "LOCAL_WORLD_SIZE": "2"}, 2),
    ],
)
def test_threads(
    wanted: int, model: nn.Module, variables: dict[str, str], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OMP_NUM_THREADS", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr("sys.platform", "linux")
    assert hardware.choose_threads(wanted, model, 256) == expected
