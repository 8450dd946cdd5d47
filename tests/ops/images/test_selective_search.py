"""Segments against scikit-image, the hierarchy against its definition, and which objects of scenes are proposed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from skimage.segmentation import felzenszwalb
from sklearn.datasets import load_sample_images
from torch import Tensor

from descend.data.toys.scenes import scenes
from descend.errors import Mistake
from descend.ops.boxes import pairwise_iou
from descend.ops.images import segments
from descend.ops.images.segments import join_by_loop, make_edges, segment_image
from descend.ops.images.selective_search import Grouping, SearchRule, derivatives, search_regions


def photo(step: int = 1) -> Tensor:
    """The first of scikit-learn's photographs (3, h, w), every step-th pixel."""
    return torch.tensor(load_sample_images().images[0][::step, ::step]).permute(2, 0, 1) / 255


def make_noise(seed: int = 0) -> Tensor:
    """Blocks of colour with noise: no two edges cost the same."""
    g = torch.Generator().manual_seed(seed)
    blocks = torch.rand(3, 5, 6, generator=g).repeat_interleave(8, 1).repeat_interleave(8, 2)
    return (blocks + 0.05 * torch.randn(3, 40, 48, generator=g)).clamp(0, 1).double()


@pytest.mark.system("selective-search")
@pytest.mark.system("selective-search", "segments")
@pytest.mark.parametrize(("scale", "sigma", "least"), [(100.0, 0.8, 20), (30.0, 0.5, 5), (300.0, 1.2, 50)])
def test_segments_are_those_of_scikit_image(scale: float, sigma: float, least: int) -> None:
    x = make_noise()
    theirs = torch.from_numpy(felzenszwalb(x.permute(1, 2, 0).numpy(), scale, sigma, least).astype(np.int64))
    same_partition(segment_image(x, scale, sigma, least), theirs)


@pytest.mark.system("selective-search", "segments")
def test_segments_of_a_photograph() -> None:
    x = photo(2)
    ours = segment_image(x, 100.0, 0.8, 20)
    theirs = felzenszwalb((x * 255).round().byte().permute(1, 2, 0).numpy(), 100, 0.8, 20)
    assert abs(int(ours.max()) - theirs.max()) <= 0.02 * theirs.max()  # equal costs may be sorted in another order


def same_partition(a: Tensor, b: Tensor) -> None:
    """The same pixels together, whatever the numbers."""
    pairs = torch.stack([a.flatten(), b.flatten()]).unique(dim=1)
    assert pairs.shape[1] == int(a.max()) + 1 == int(b.max()) + 1


def test_with_and_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    x = make_noise(1)
    compiled = segment_image(x, 100.0)
    monkeypatch.setattr(segments, "join_by_edges", lambda *given: None)
    assert torch.equal(segment_image(x, 100.0), compiled)
    edges, costs = make_edges(torch.tensor([[[0.0, 0.1, 0.9]]]))
    assert join_by_loop(3, edges[costs.argsort()], costs.sort().values, 0.2, 1).tolist() == [0, 0, 2]


def test_bad_images_are_refused() -> None:
    with pytest.raises(Mistake, match="one image"):
        segment_image(torch.zeros(1, 3, 8, 8))
    with pytest.raises(Mistake, match="one image"):
        segment_image(torch.zeros(3, 8, 8, dtype=torch.uint8))


def alike_by_hand(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """s of two masks, read from the pixels."""
    slopes = derivatives(torch.from_numpy(x)).numpy()

    def histogram(values: np.ndarray, mask: np.ndarray, bins: int, low: float, high: float) -> np.ndarray:
        edges = np.linspace(low, high, bins + 1)
        found = np.concatenate([np.histogram(np.clip(v[mask], low, high), edges)[0] for v in values])
        return found / found.sum()

    total = np.minimum(histogram(x, a, 25, 0, 1), histogram(x, b, 25, 0, 1)).sum()
    total += np.minimum(histogram(slopes, a, 10, -0.5, 0.5), histogram(slopes, b, 10, -0.5, 0.5)).sum()
    y, z = (a | b).nonzero()
    hull = (y.max() - y.min() + 1) * (z.max() - z.min() + 1)
    size = a.sum() + b.sum()
    return total + 1 - size / a.size + 1 - (hull - size) / a.size


@pytest.mark.system("selective-search", "hierarchy")
def test_the_hierarchy_joins_the_most_alike() -> None:
    """Every join, replayed on masks: its two are neighbours, no other neighbours are more alike, and the box of the new
    segment is that of the union."""
    x = make_noise(2)
    start = segment_image(x, 200.0, 0.8, 60)
    n = int(start.max()) + 1
    assert n > 5
    masks = {i: (start == i).numpy() for i in range(n)}
    group, joins = Grouping(x.float(), start), []
    join = group.join
    group.join = lambda i, j, new: (joins.append((i, j, new)), join(i, j, new))[1]  # type: ignore[method-assign]
    boxes = group.run()
    assert len(joins) == n - 1
    for i, j, new in joins:
        alike = {}
        for a in masks:
            for b in masks:
                if a < b and touch(masks[a], masks[b]):
                    alike[a, b] = alike_by_hand(x.numpy(), masks[a], masks[b])
        assert alike[min(i, j), max(i, j)] > max(alike.values()) - 1e-5
        masks[new] = masks.pop(i) | masks.pop(j)
        y, z = masks[new].nonzero()
        assert boxes[new].tolist() == [z.min(), y.min(), z.max() + 1, y.max() + 1]
        low, high = torch.minimum(boxes[i, :2], boxes[j, :2]), torch.maximum(boxes[i, 2:], boxes[j, 2:])
        assert torch.equal(boxes[new], torch.cat([low, high]))
    assert masks[2 * n - 2].all()


def touch(a: np.ndarray, b: np.ndarray) -> bool:
    grown = np.pad(a, 1)
    around = sum(
        grown[1 + i : grown.shape[0] - 1 + i, 1 + j : grown.shape[1] - 1 + j] for i in (-1, 0, 1) for j in (-1, 0, 1)
    )
    return bool((around.astype(bool) & b).any())


@pytest.mark.system("selective-search", "recall")
def test_objects_of_scenes_are_proposed() -> None:
    """Of all objects of a dozen scenes, at least 95% have a proposal that overlaps them by a half (measured: all), with
    fewer than 200 boxes an image."""
    found = scenes(12, 96, torch.Generator().manual_seed(0), (1, 4))
    hits, counts = [], []
    for x, boxes, present in zip(found.x, found.box, found.present, strict=True):
        regions = search_regions(x, SearchRule(scales=(100.0,)))
        hits.append(pairwise_iou(boxes[present].float(), regions).amax(dim=1) >= 0.5)
        counts.append(len(regions))
    assert torch.cat(hits).float().mean() >= 0.95
    assert max(counts) < 200


@pytest.mark.system("selective-search", "count")
def test_about_two_thousand_boxes_of_a_photograph() -> None:
    """Several searches together: more than 1000 and at most 2000 boxes, none twice, all inside, the largest segment
    (the whole image) first."""
    x = photo(2)
    regions = search_regions(x, SearchRule(scales=(50.0, 100.0)))
    assert 1000 < len(regions) <= 2000
    assert len(regions.unique(dim=0)) == len(regions)
    assert regions[0].tolist() == [0, 0, x.shape[2], x.shape[1]]
    assert (regions >= 0).all()
    assert (regions[:, 2:] <= torch.tensor([x.shape[2], x.shape[1]])).all()
    assert (regions[:, 2:] - regions[:, :2]).amin() >= 4
