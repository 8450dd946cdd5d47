"""Choosing at random by the batch's numbers: uniform, independent of the batch, and balanced."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, kstest

from descend.ops.detection.sampling import choose, choose_balanced, draw_keys


@pytest.mark.system("region-proposal-network", "sampling")
def test_keys_are_uniform_and_unrelated() -> None:
    u = torch.rand(20, generator=torch.Generator().manual_seed(0))
    keys = draw_keys(u, 5000).double().numpy()
    assert keys.min() >= 0
    assert keys.max() < 1
    assert kstest(keys.flatten(), "uniform").pvalue > 0.01
    assert np.abs(np.corrcoef(keys)[~np.eye(20, dtype=bool)]).max() < 0.06  # 20 images: 4 σ is 0.057
    steps = np.corrcoef(keys[:, :-1].flatten(), keys[:, 1:].flatten())[0, 1]
    assert abs(steps) < 0.02
    near = draw_keys(torch.tensor([0.5, 0.5 + 1e-6]), 5000).double().numpy()
    assert abs(np.corrcoef(near)[0, 1]) < 0.06


@pytest.mark.system("region-proposal-network", "sampling")
def test_every_one_is_chosen_as_often() -> None:
    u = torch.rand(4000, generator=torch.Generator().manual_seed(1))
    may = torch.ones(4000, 20, dtype=torch.bool)
    chosen = choose(may, draw_keys(u, 20), 5)
    assert (chosen.sum(dim=1) == 5).all()
    assert chisquare(chosen.sum(dim=0).numpy()).pvalue > 0.01


@pytest.mark.system("region-proposal-network", "sampling")
def test_a_share_of_objects_and_the_rest_background() -> None:
    """256 of an image, at most half objects; where they are few, background fills up."""
    kind = torch.zeros(3, 1000)
    kind[0, :400], kind[1, :7] = 1, 1
    kind[2, 50:] = 2  # left out
    keys = draw_keys(torch.tensor([0.1, 0.2, 0.3]), 1000)
    objects, others = choose_balanced(kind == 1, kind == 0, keys, 256, 0.5)
    assert objects.sum(dim=1).tolist() == [128, 7, 0]
    assert others.sum(dim=1).tolist() == [128, 249, 50]
    assert not (objects & (kind != 1)).any()
    assert not (others & (kind != 0)).any()
    alone, _ = choose_balanced(kind[:1] == 1, kind[:1] == 0, draw_keys(torch.tensor([0.1]), 1000), 256, 0.5)
    assert torch.equal(alone, objects[:1])
