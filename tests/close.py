"""The one comparison of numbers in the tests: tolerance by dtype, and it must be able to fail."""

from __future__ import annotations

from typing import Any

import torch

TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}


def close(ours: Any, theirs: Any, loosen: float = 1.0) -> None:
    """Assert that two results agree to the accuracy of the coarser dtype (times `loosen`, with a reason beside it).

    The oracle moved by 1% must be refused; otherwise the comparison proves nothing.
    """
    a, b = torch.as_tensor(ours).detach(), torch.as_tensor(theirs).detach()
    assert a.shape == b.shape, f"shape {tuple(a.shape)} against {tuple(b.shape)}"
    if not (a.is_floating_point() or b.is_floating_point()):
        assert torch.equal(a, b)
        return
    tol = loosen * max(TOLERANCE.get(x.dtype, 0.0) for x in (a, b))
    a, b = a.double(), b.double()
    scale = b[b.isfinite()].abs().max().item() if b.isfinite().any() else 0.0
    assert torch.allclose(a, b, rtol=tol, atol=tol * max(scale, 1e-6), equal_nan=True), (
        f"differ by {(a - b).abs().max().item():.3g}, tolerance {tol:.1g} of {scale:.3g}"
    )
    if scale:
        assert not torch.allclose(a, b * 1.01, rtol=tol, atol=tol * scale), "the comparison cannot fail"
