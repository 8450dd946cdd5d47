"""Filters made by hand: edges, sums, the unit's favourite patch, and edges as features of digits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
import torch
from torch import nn

from descend.ops.images.filters import FILTERS, apply, edge_features, gradient, kernel, preferred_patch, response_map
from tests.close import close

SLUG = "hand-crafted-filters"


@pytest.mark.system("hand-crafted-filters", "step-edge")
@pytest.mark.system(SLUG)
def test_sobel_on_a_step_edge() -> None:
    """S940-DLD.207: a vertical step answers 4 to sobel_x at the two columns beside it, and nothing to sobel_y."""
    x = torch.zeros(6, 6)
    x[:, 3:] = 1
    assert torch.equal(apply(x, kernel("sobel_x")), torch.tensor([0.0, 4.0, 4.0, 0.0]).expand(4, 4))
    assert not apply(x, kernel("sobel_y")).any()
    size, direction = gradient(x)
    assert torch.equal(size[2], torch.tensor([0.0, 0, 4, 4, 0, 0]))
    assert direction[2, 2] == 0  # the change points to the right
    close(gradient(x.T)[1][3, 2], torch.tensor(torch.pi / 2))


@pytest.mark.system("hand-crafted-filters", "filters")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("name", list(FILTERS))
def test_every_filter_against_scipy(name: str) -> None:
    image = np.random.default_rng(0).normal(size=(2, 7, 9))
    w = kernel(name, torch.float64)
    theirs = np.stack([scipy.ndimage.correlate(one, w.numpy(), mode="constant") for one in image])
    close(apply(torch.from_numpy(image), w, padding=1), torch.from_numpy(theirs))
    flat = apply(torch.full((5, 5), 3.0, dtype=torch.float64), w)
    close(flat + 1, torch.full((3, 3), float(3 * w.sum()) + 1, dtype=torch.float64))  # + 1: a 0 can not be compared


@pytest.mark.system("hand-crafted-filters", "own-patch")
@pytest.mark.system(SLUG)
def test_the_unit_answers_most_to_its_own_filter() -> None:
    """DLN-A.144: over patches of length 1 the response is largest, ‖w‖, for w/‖w‖; below −b there is none."""
    random = torch.Generator().manual_seed(0)
    w = torch.randn(2, 3, 3, generator=random, dtype=torch.float64)
    patches = torch.randn(5000, 2, 3, 3, generator=random, dtype=torch.float64)
    patches /= patches.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    best = response_map(preferred_patch(w)[None], w)
    close(best, w.norm().view(1, 1, 1))
    assert (response_map(patches, w) < best).all()
    bias = -0.5
    answers = response_map(patches, w, bias).flatten()
    assert torch.equal(answers > 0, (patches * w).sum((1, 2, 3)) > 0.5)
    with pytest.raises(ValueError, match="there is no filter"):
        kernel("nose")


@pytest.mark.system("hand-crafted-filters", "features")
@pytest.mark.system(SLUG)
def test_edges_are_features_of_digits() -> None:
    """S940-DLD.207: a linear reader of hand-made edges beats one of the same number of random projections."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import RidgeClassifier

    bunch = load_digits()
    x, y = torch.from_numpy(bunch.images / 16), bunch.target
    edges = edge_features(x, cells=3, bins=8)
    assert edges.shape == (1797, 72)
    scores = {}
    mixed = x.flatten(1) @ torch.randn(64, 72, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for name, features in (("edges", edges), ("pixels", mixed)):
        reader = RidgeClassifier().fit(features[:1000].numpy(), y[:1000])
        scores[name] = reader.score(features[1000:].numpy(), y[1000:])
    assert scores["edges"] > 0.91
    assert scores["edges"] > scores["pixels"] + 0.005
    turned = edge_features(x[:5].rot90(1, (1, 2)), 1, 4)  # a turn moves the directions on by one bin
    close(turned, edge_features(x[:5], 1, 4).roll(-1, 1))


@pytest.mark.system("hand-crafted-filters", "response-map")
@pytest.mark.system(SLUG)
def test_the_answers_of_a_unit_over_an_image() -> None:
    """DLN-A.144: ReLU(w·patch + b) at every place, by loops; the place that looks like w is found."""
    random = torch.Generator().manual_seed(1)
    w = torch.randn(2, 3, 3, generator=random, dtype=torch.float64)
    image = 0.1 * torch.randn(1, 2, 7, 9, generator=random, dtype=torch.float64)
    image[0, :, 3:6, 2:5] += preferred_patch(w)
    found = response_map(image, w, -0.1)
    by_hand = [[(w * image[0, :, i : i + 3, j : j + 3]).sum() - 0.1 for j in range(7)] for i in range(5)]
    close(found[0], torch.tensor(by_hand, dtype=torch.float64).clamp_min(0))
    assert divmod(int(found[0].argmax()), 7) == (3, 2)


@pytest.mark.system("hand-crafted-filters", "against-learned")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_with_few_labels_edges_beat_learned_features(seed: int) -> None:
    """S940-DLD.207: 72 features each, read by the same linear reader of 100 labelled digits, 797 others tested."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import RidgeClassifier
    from torch.nn import functional as F

    bunch, few = load_digits(), 100
    x, y = torch.from_numpy(bunch.images / 16).float(), torch.from_numpy(bunch.target)
    torch.manual_seed(seed)
    first = nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
    learned = nn.Sequential(*first, nn.Conv2d(16, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten())
    model = nn.Sequential(learned, nn.Linear(72, 10))
    rule = torch.optim.AdamW(model.parameters(), 1e-2)
    for _ in range(80):
        rule.zero_grad()
        F.cross_entropy(model(x[:few, None]), y[:few]).backward()
        rule.step()
    scores = []
    for features in (edge_features(x, cells=3, bins=8), learned(x[:, None]).detach()):
        reader = RidgeClassifier().fit(features[:few].numpy(), bunch.target[:few])
        scores.append(reader.score(features[1000:].numpy(), bunch.target[1000:]))
    assert scores[0] > scores[1] + 0.02 > 0.6
