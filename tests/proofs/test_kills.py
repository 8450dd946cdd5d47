"""A sample of `python -m proofs.kills`: two recipes of the day's choice, killed and resumed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from proofs.kills import make_tiny, storm
from proofs.tiny import write_files

SEED = 0


@pytest.mark.parametrize("name", ["mlp-wine", "gru-chars"])
def test_killed_and_resumed_is_uninterrupted(name: str, tmp_path: Path) -> None:
    recipe = make_tiny(name, write_files(tmp_path / "files"))
    kills, ended, wrong = storm(name, recipe, tmp_path, 3, random.Random(f"{SEED} {name}"))
    assert wrong == [], f"seed {SEED}"
    assert kills == 3
    assert ended >= 1
