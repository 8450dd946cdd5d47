"""A compiled run is the eager one, to rounding."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.close import close
from tests.engine.small import small, training


def test_compiled_is_eager(tmp_path: Path) -> None:
    eager, compiled = (training(small(tmp_path, compile=c), torch.float64) for c in ("off", "on"))
    for _ in range(3):
        close(compiled.advance()["loss"], eager.advance()["loss"])
    for a, b in zip(eager.parts.model.parameters(), compiled.parts.model.parameters(), strict=True):
        close(b, a)
    torch._dynamo.reset()
