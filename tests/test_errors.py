"""Where the machine comes to its limits: one line with the figure and the fix; what is ours stays a traceback."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest
import torch

from descend.errors import explain_limit, naming


def catch(kind: type[Exception], action: object) -> Exception:
    with pytest.raises(kind) as caught:
        action()  # type: ignore[operator]
    return caught.value


def test_memory_is_told_with_its_figure() -> None:
    said = explain_limit(catch(RuntimeError, lambda: torch.empty(2**44, dtype=torch.float64)))
    assert said.startswith("out of memory: 131,072.0 GiB more were needed; lower --batch")
    said = explain_limit(catch(MemoryError, lambda: np.empty(2**50)))
    assert said.startswith("out of memory: 8.00 PiB more were needed; lower")
    assert explain_limit(MemoryError()).startswith("out of memory; lower")
    cuda = "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 8.00 GiB"
    assert "2.50 GiB more" in explain_limit(RuntimeError(cuda))
    assert "out of memory" in explain_limit(catch(RuntimeError, lambda: torch.empty(2**62, 8)))


def test_the_system_is_told_with_the_file_and_the_fix() -> None:
    said = explain_limit(OSError(errno.ENOSPC, "No space left on device", "run/metrics.jsonl"))
    assert said.startswith("run/metrics.jsonl: no space left on device; free space")
    assert explain_limit(OSError(errno.EIO, "Input/output error")).startswith("the output cannot be written: input")
    assert "--threads" in explain_limit(RuntimeError("can't start new thread"))


def test_our_own_errors_stay_ours() -> None:
    for error in (RuntimeError("shapes differ"), OSError("no number"), ValueError("x")):
        assert explain_limit(error) == ""


def test_naming_fills_in_only_what_is_missing() -> None:
    for given, expected in (((), "a.txt"), (("b.txt",), "b.txt")):
        with pytest.raises(OSError, match="full") as caught, naming(Path("a.txt")):
            raise OSError(errno.ENOSPC, "full", *given)
        assert caught.value.filename == expected
