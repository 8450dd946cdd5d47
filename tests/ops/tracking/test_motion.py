"""The Kalman filter of boxes against filterpy, its closed forms, and the Kalman gain in the long run."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from descend.ops.boxes import to_centre, to_corners
from descend.ops.tracking.motion import ConstantVelocity, Moving, Still, correct_linear, predict_linear
from tests.close import close


def walk(n: int, frames: int, seed: int = 0) -> torch.Tensor:
    """Boxes that wander (frames, n, 4)."""
    random = torch.Generator().manual_seed(seed)
    centre = 100 + torch.randn(frames, n, 2, generator=random, dtype=torch.float64).cumsum(0) * 3
    size = 30 + torch.rand(1, n, 2, generator=random, dtype=torch.float64) * 20
    return to_corners(torch.cat([centre, size.expand(frames, n, 2)], dim=-1))


@pytest.mark.system("multi-object-tracking")
@pytest.mark.system("multi-object-tracking", "motion")
def test_as_filterpy() -> None:
    """One filter of eight numbers each there, all boxes and numbers at once here; the sixth frame is missed."""
    kalman = pytest.importorskip("filterpy.kalman")
    motion, seen = ConstantVelocity(), walk(3, 12)
    state, peers = motion.start(seen[0]), []
    for i in range(3):
        peer = kalman.KalmanFilter(dim_x=8, dim_z=4)
        peer.F = np.kron(np.eye(4), [[1, 1], [0, 1]])
        peer.H = np.kron(np.eye(4), [[1, 0]])
        peer.x = state.mean[i].reshape(8, 1).numpy().copy()
        peer.P = torch.block_diag(*state.covariance[i]).numpy()
        peers.append(peer)
    for frame in range(1, 12):
        for i, peer in enumerate(peers):
            size = float(state.mean[i, 2:, 0].prod().sqrt())
            variances = (motion.acceleration * size * np.array([1, 1, motion.growth, motion.growth])) ** 2
            peer.predict(Q=np.kron(np.diag(variances), [[0.25, 0.5], [0.5, 1]]))
        state = motion.predict(state)
        if frame != 6:
            for i, peer in enumerate(peers):
                z = to_centre(seen[frame, i])
                peer.update(z.numpy()[:, None], R=np.eye(4) * float(motion.measured**2 * z[2:].prod()))
            state = motion.correct(state, seen[frame])
        close(state.mean.reshape(3, 8), torch.as_tensor(np.stack([p.x[:, 0] for p in peers])))
        close(
            torch.stack([torch.block_diag(*c) for c in state.covariance]),
            torch.as_tensor(np.stack([p.P for p in peers])),
        )


@pytest.mark.system("multi-object-tracking", "motion")
@pytest.mark.parametrize("ratio", [0.05, 0.5, 2.0])
def test_the_gain_in_the_long_run(ratio: float) -> None:
    """The α-β filter: β = 2(2 − α) − 4 √(1 − α), (σ_a / σ_z)² = β² / (1 − α)."""
    one = torch.ones(1, 4, dtype=torch.float64)
    state = Moving(torch.zeros(1, 4, 2, dtype=torch.float64), torch.eye(2, dtype=torch.float64).expand(1, 4, 2, 2))
    for _ in range(400):
        state = predict_linear(state, ratio**2 * one)
        before, state = state, correct_linear(state, 0 * one, one)
    alpha, beta = (before.covariance[0, 0, 0] / (before.covariance[0, 0, 0, 0] + 1)).unbind()
    close(beta, 2 * (2 - alpha) - 4 * (1 - alpha).sqrt())
    close(beta.square() / (1 - alpha), torch.tensor(ratio**2, dtype=torch.float64))


@pytest.mark.system("multi-object-tracking", "motion")
def test_a_straight_path_is_learned() -> None:
    """5 and −3 pixels a frame: the prediction comes near, and nearer, while a box that stays lags a frame behind."""
    frames = torch.arange(30, dtype=torch.float64)
    centre = torch.stack([100 + 5 * frames, 300 - 3 * frames], dim=1)
    seen = to_corners(torch.cat([centre, torch.full((30, 2), 40.0)], dim=1).double())[:, None]
    for motion, off in ((ConstantVelocity(), 0.05), (Still(), 10.0)):
        state = motion.start(seen[0])
        for boxes in seen[1:]:
            state = motion.predict(state)
            error = float((state.boxes() - boxes).abs().max())
            state = motion.correct(state, boxes)
        assert error < off
    assert error == 5  # Still: the step of a frame


def test_sides_stay_positive() -> None:
    """A box that shrinks is never turned inside out by its prediction."""
    motion = ConstantVelocity(growth=1.0)
    state = motion.start(torch.tensor([[0.0, 0.0, 40.0, 40.0]]).double())
    for side in (30.0, 20.0, 10.0):
        state = motion.correct(motion.predict(state), torch.tensor([[0.0, 0.0, side, side]]).double())
    for _ in range(20):
        state = motion.predict(state)
        box = state.boxes()
        assert (box[:, 2:] > box[:, :2]).all()
        assert box.isfinite().all()
