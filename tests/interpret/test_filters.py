from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.interpret.filters import measure_entropies, read_filters, scale_filters
from descend.interpret.maximise import maximise, total_variation
from descend.interpret.representations import find_head, project, representations
from descend.models.lenet import LeNet, LeNetConfig
from tests.close import close
from tests.interpret.nets import Cam


@pytest.mark.system("filter-visualization")
@pytest.mark.system("filter-visualization", "filters")
def test_filters_of_any_network() -> None:
    model = LeNet(LeNetConfig())
    assert read_filters(model).shape == (6, 1, 5, 5)
    assert torch.equal(read_filters(model, "c3"), model.c3.weight)
    assert scale_filters(read_filters(model, "c3")).shape == (96, 1, 5, 5)
    colour = scale_filters(torch.randn(64, 3, 11, 11))  # AlexNet's first layer
    assert colour.shape == (64, 3, 11, 11)
    assert 0 <= float(colour.min()) <= float(colour.max()) <= 1
    close(scale_filters(torch.zeros(1, 3, 2, 2)), torch.full((1, 3, 2, 2), 0.5))
    for name, said in (("f5", "is a Linear; the convolutions are: c1, c3"), ("c4", "Did you mean 'c")):
        with pytest.raises(Mistake, match=said):
            read_filters(model, name)
    with pytest.raises(Mistake, match="no convolution"):
        read_filters(nn.Linear(2, 2))


@pytest.mark.system("filter-visualization")
@pytest.mark.system("filter-visualization", "entropy")
def test_entropy_of_a_wave_and_of_noise() -> None:
    rows = torch.arange(8.0)
    wave = torch.cos(2 * math.pi * rows / 8).expand(8, 8)[None, None]
    close(
        measure_entropies(wave), torch.tensor([math.log(2) / math.log(63)], dtype=torch.float64), loosen=1e3
    )  # float32 input
    impulse = torch.zeros(1, 1, 8, 8)
    impulse[..., 3, 4] = 1
    close(
        measure_entropies(impulse + 5), torch.ones(1, dtype=torch.float64), loosen=1e3
    )  # every frequency alike; the mean is free
    noise = measure_entropies(torch.randn(200, 1, 8, 8, generator=torch.Generator().manual_seed(0)))
    assert 0.85 < float(noise.mean()) < 0.95


@pytest.mark.system("filter-visualization")
@pytest.mark.system("filter-visualization", "entropy")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_trained_filters_are_more_ordered_than_random_ones(seed: int) -> None:
    """Grating images in two directions: after a short training the filters are waves."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Conv2d(1, 8, 7), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2))
    random = torch.Generator().manual_seed(seed + 1)
    before = float(measure_entropies(read_filters(model)).mean())
    rule = torch.optim.AdamW(model.parameters(), 0.03, weight_decay=0.1)
    for _ in range(100):
        y = torch.randint(2, (32,), generator=random)
        phase, pixel = 6.28 * torch.rand(32, 1, 1, generator=random), torch.arange(16.0)
        wave = torch.sin(0.9 * pixel + phase).expand(32, 16, 16)
        x = torch.where(y[:, None, None] > 0, wave, wave.transpose(1, 2))[:, None]
        loss = nn.functional.cross_entropy(model(x + 0.3 * torch.randn(x.shape, generator=random)), y)
        rule.zero_grad()
        loss.backward()
        rule.step()
    assert float(loss.detach()) < 0.2
    assert float(measure_entropies(read_filters(model)).mean()) < before - 0.1


@pytest.mark.system("filter-visualization")
@pytest.mark.system("filter-visualization", "best-image")
def test_the_best_image_of_a_linear_unit_is_its_weights() -> None:
    """a = w·x − λ‖x‖² is largest at x = w / 2λ."""
    torch.manual_seed(0)
    linear = nn.Linear(12, 3)
    net = nn.Sequential(nn.Flatten(), linear).double()
    found = maximise(net, [2, 0], torch.zeros(3, 2, 2).double(), steps=400, lr=0.05, decay=0.5, smooth=0.0)
    close(found.flatten(1), linear.weight[[2, 0]].detach(), loosen=1e5)


@pytest.mark.system("filter-visualization")
@pytest.mark.system("filter-visualization", "best-image")
def test_the_penalties_smooth_the_image_and_jitter_keeps_its_size() -> None:
    torch.manual_seed(0)
    net, start = Cam(), 0.1 * torch.randn(3, 10, 10)
    rough = maximise(net, [1, 3], start, "conv", steps=30, smooth=0.0)
    even = maximise(net, [1, 3], start, "conv", steps=30, smooth=0.1, jitter=2)
    assert rough.shape == even.shape == (2, 3, 10, 10)
    assert (total_variation(even) < 0.5 * total_variation(rough)).all()
    unit = net.conv(rough).mean(dim=(2, 3))
    plain = net.conv(start[None]).mean(dim=(2, 3))
    assert unit[0, 1] > plain[0, 1]
    assert unit[1, 3] > plain[0, 3]
    with pytest.raises(Mistake, match="needs a unit"):
        maximise(net, [], start)


def test_representations_are_what_the_head_receives() -> None:
    torch.manual_seed(0)
    model, x = LeNet(LeNetConfig()), torch.randn(7, 1, 32, 32)
    h = representations(model, x, batch=3)
    out = model.get_submodule(find_head(model))
    assert isinstance(out, nn.Linear)
    close(out(h), model(x))
    with pytest.raises(Mistake, match="no linear layer"):
        find_head(nn.Conv2d(1, 1, 1))


def test_maps_of_representations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("descend.interpret.representations.STEPS", 1000)
    random = torch.Generator().manual_seed(0)
    v = torch.randn(40, 6, generator=random)
    v[20:] += 8

    def separated(points: Tensor) -> bool:
        a, b = points[:20], points[20:]
        within = torch.cdist(a, a).amax()
        return bool(torch.cdist(a, b).amin() > 0.2 * within)

    pca = project(v)
    centred = v.double() - v.double().mean(0)
    _, s, _ = torch.linalg.svd(centred, full_matrices=False)
    close(pca.norm(dim=0), s[:2])
    assert separated(pca)
    assert separated(project(v, "tsne"))
    with pytest.raises(Mistake, match="at least 3"):
        project(v[:2])


def test_vectors_that_are_all_alike_make_one_point() -> None:
    for value in (0.0, 3.0, float("nan")):
        points = project(torch.full((60, 5), value), "tsne")
        assert points.unique(dim=0).shape == (1, 2)
