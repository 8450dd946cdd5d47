"""The other side of a comparison has to be right, too, or beating it says nothing."""

from __future__ import annotations

import numpy as np

from proofs.baselines import BINS, describe_gradients, score_boosting, score_hog, score_tf_idf


def test_gradients_point_where_the_image_changes() -> None:
    """A ramp to the right has all its votes in the first orientation, one downwards in the middle ones."""
    ramp = np.tile(np.arange(32.0), (32, 1))
    across, down = describe_gradients(np.stack([ramp, ramp.T])).reshape(2, -1, BINS)
    assert across.shape == (36, BINS), "3 × 3 blocks of 4 cells"
    np.testing.assert_allclose(across[:, 0], 0.5, atol=1e-3)
    assert np.allclose(across[:, 1:], 0, atol=1e-6)
    np.testing.assert_allclose(down[:, 4], down[:, 5], atol=1e-6)
    assert down[:, :4].max() < 1e-6


def test_the_contrast_of_an_image_does_not_matter() -> None:
    image = np.random.default_rng(0).uniform(0, 255, (1, 32, 32))
    np.testing.assert_allclose(describe_gradients(image), describe_gradients(0.1 * image + 50), atol=1e-4)


def test_each_learns_what_is_there() -> None:
    random = np.random.default_rng(0)
    slope: list[int] = random.choice([0, 1], 60).tolist()
    ramp = np.tile(np.arange(32.0), (32, 1))
    images = np.stack([(ramp if k else ramp.T) + random.normal(0, 0.5, (32, 32)) for k in slope])[..., None].repeat(
        3, -1
    )
    assert score_hog(images[:40], slope[:40], images[40:], slope[40:]) == 1
    texts = [f"{('bad', 'good')[k]} film number {i % 5}" for i, k in enumerate(slope)]
    assert score_tf_idf(texts[:40], slope[:40], texts[40:], slope[40:]) == 1
    x = random.normal(size=(400, 2))
    y = np.sin(2 * x[:, 0]) + 0.1 * random.normal(size=400)
    assert score_boosting(x[:300], y[:300], x[300:], y[300:]) > 0.8
