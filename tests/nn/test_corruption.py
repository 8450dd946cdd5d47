"""Three corruptions: what each does, and to how many pixels."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import norm

from descend.nn.corruption import GaussianCorruption, MaskingCorruption, SaltAndPepper
from tests.close import close


@pytest.mark.system("denoising-autoencoder")
@pytest.mark.system("denoising-autoencoder", "corruptions")
def test_what_each_corruption_does() -> None:
    random = torch.Generator().manual_seed(0)
    x = 0.2 + 0.6 * torch.rand(200, 1, 8, 8, dtype=torch.float64, generator=random)
    u = torch.rand(x.shape, dtype=torch.float64, generator=random)
    noisy = GaussianCorruption(0.3)(x, u)
    close(noisy, x + 0.3 * torch.from_numpy(norm.ppf(u.numpy())))
    assert abs((noisy - x).mean()) < 0.01
    assert abs((noisy - x).std() - 0.3) < 0.01
    masked = MaskingCorruption(0.25)(x, u)
    gone = masked == 0
    assert abs(gone.double().mean() - 0.25) < 0.01
    assert torch.equal(masked[~gone], x[~gone])
    spoilt = SaltAndPepper(0.4)(x, u)
    black, white = spoilt == 0, spoilt == 1
    assert abs(black.double().mean() - 0.2) < 0.01
    assert abs(white.double().mean() - 0.2) < 0.01
    assert torch.equal(spoilt[~(black | white)], x[~(black | white)])


@pytest.mark.parametrize("kind", [GaussianCorruption, MaskingCorruption, SaltAndPepper])
def test_nothing_is_spoilt_by_nothing(kind: type) -> None:
    x = torch.rand(3, 4)
    assert torch.equal(kind(0.0)(x, torch.rand(3, 4)), x)


def test_ends_of_the_uniform_are_finite_and_bad_shares_are_refused() -> None:
    assert GaussianCorruption(1.0)(torch.zeros(2), torch.tensor([0.0, 1.0])).isfinite().all()
    with pytest.raises(ValueError, match="between 0 and 1"):
        MaskingCorruption(1.5)
    with pytest.raises(ValueError, match="standard deviation"):
        GaussianCorruption(-1.0)
