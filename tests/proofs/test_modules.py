"""Every proof and benchmark can be started: what they import is there."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(f"{room}.{path.stem}" for room in ("proofs", "benchmarks") for path in (ROOT / room).glob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_it_can_be_started(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
