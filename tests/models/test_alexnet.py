"""AlexNet against a plain network with torchvision's names, and the paper's two details against their equations."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.errors import Mistake
from descend.models.alexnet import SIZES, SMALL, TORCHVISION, AlexNet, AlexNetConfig, response_norm
from descend.weights.flat import read_flat, write_flat
from descend.weights.rules import find
from tests.close import close

pytestmark = pytest.mark.system("alexnet")
DATA = Path(__file__).parent / "data" / "torchvision_keys.json"
REDUCED = AlexNetConfig(classes=7, widths=(4, 6, 8, 6, 4), grid=2, hidden=10)


class Plain(nn.Module):
    """The public layout: features.0 .. features.12, classifier.0 .. classifier.6."""

    def __init__(self, widths: tuple[int, ...], grid: int, hidden: int, classes: int):
        super().__init__()
        a, b, c, d, e = widths
        self.features = nn.Sequential(
            nn.Conv2d(3, a, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Conv2d(a, b, 5, 1, 2), nn.ReLU(),
            nn.MaxPool2d(3, 2), nn.Conv2d(b, c, 3, 1, 1), nn.ReLU(), nn.Conv2d(c, d, 3, 1, 1), nn.ReLU(),
            nn.Conv2d(d, e, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(3, 2),
        )  # fmt: skip
        self.grid = grid
        self.classifier = nn.Sequential(
            nn.Dropout(), nn.Linear(e * grid**2, hidden), nn.ReLU(), nn.Dropout(), nn.Linear(hidden, hidden),
            nn.ReLU(), nn.Linear(hidden, classes),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.classifier(F.adaptive_avg_pool2d(self.features(x), self.grid).flatten(1))
        return y


@pytest.mark.system("alexnet", "public-files")
@pytest.mark.parametrize("ending", ["pth", "safetensors"])
def test_public_files_both_ways(ending: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    theirs = Plain(REDUCED.widths, 2, 10, 7).double().eval()
    ours = AlexNet(REDUCED).double().eval()
    torch.save(theirs.state_dict(), tmp_path / "public.pth")
    read_flat(ours, tmp_path / "public.pth", TORCHVISION)
    x = torch.randn(2, 3, 131, 127, dtype=torch.float64)
    close(ours(x), theirs(x))
    write_flat(ours, tmp_path / f"ours.{ending}", TORCHVISION)
    again = AlexNet(REDUCED).double().eval()
    read_flat(again, tmp_path / f"ours.{ending}", TORCHVISION)
    assert torch.equal(again(x), ours(x))
    with pytest.raises(Mistake, match=r"key 'features.0.weight' has shape \(4, 3, 11, 11\), this AlexNet expects"):
        read_flat(AlexNet(replace(REDUCED, kernel=7)), tmp_path / "public.pth", TORCHVISION)


@pytest.mark.system("alexnet", "public-files")
def test_names_and_shapes_of_the_public_file() -> None:
    with torch.device("meta"):
        model = AlexNet(SIZES["alexnet"])
    ours = {}
    for name, tensor in model.state_dict().items():
        found = find(name, TORCHVISION, "ours")
        assert found is not None
        ours[found[1]] = "x".join(map(str, tensor.shape))
    public = dict(line.split(" ") for line in json.loads(DATA.read_text())["keys"]["alexnet"])
    assert ours == public


@pytest.mark.system("alexnet", "shapes")
@pytest.mark.parametrize(("size", "pixels", "first"), [("alexnet", 224, 55), ("alexnet-paper", 227, 55)])
def test_published_shapes(size: str, pixels: int, first: int) -> None:
    """Five convolutions, three dense layers; maps of side 55, 27, 13, 6; the average before f6 changes nothing."""
    with torch.device("meta"):
        model = AlexNet(SIZES[size])
        x = torch.zeros(1, 3, pixels, pixels)
        assert model.c1(x).shape[-1] == first
        assert model.maps(x).shape == (1, 256, 6, 6)
        assert model.features(x).shape == (1, 4096)
        assert model(x).shape == (1, 1000)
    assert sum(isinstance(m, nn.Conv2d) for m in model.modules()) == 5
    assert sum(isinstance(m, nn.Linear) for m in model.modules()) == 3
    assert SIZES[size].side(pixels) == 6


@pytest.mark.system("alexnet", "parameters")
@pytest.mark.parametrize(
    ("size", "parameters"),
    [("alexnet", 61_100_840), ("alexnet-paper", 60_965_224), ("alexnet-one-tower", 62_378_344)],
)
def test_parameters_of_the_variants(size: str, parameters: int) -> None:
    with torch.device("meta"):
        model = AlexNet(SIZES[size])
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert model.c1.out_channels == (64 if size == "alexnet" else 96)


@pytest.mark.system("alexnet", "response-norm")
def test_the_papers_response_normalization() -> None:
    """b_i = a_i / (2 + 10⁻⁴ Σ a_j²)^¾ over the five channels around i."""
    a = 30 * torch.randn(1, 9, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = torch.stack([
        a[:, i] / (2 + 1e-4 * a[:, max(0, i - 2) : i + 3].square().sum(1)) ** 0.75 for i in range(9)
    ], 1)  # fmt: skip
    close(response_norm(5)(a), expected)


@pytest.mark.system("alexnet", "two-groups")
def test_two_groups_see_their_own_half() -> None:
    torch.manual_seed(0)
    model = AlexNet(replace(REDUCED, groups=2, neighbours=5)).double()
    x = torch.randn(1, 4, 9, 9, dtype=torch.float64)
    changed = x.clone()
    changed[:, 2:] += 1
    same = model.c2(x) == model.c2(changed)
    assert same[:, :3].all()
    assert not same[:, 3:].any()


@pytest.mark.system("alexnet", "small")
def test_the_small_network_learns() -> None:
    """A batch of 32×32 images by heart."""
    torch.manual_seed(0)
    model = AlexNet(replace(SMALL, classes=4, dropout=0.1))
    x, y = torch.randn(8, 3, 32, 32), torch.arange(8) % 4
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(25):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert (model.eval()(x).argmax(1) == y).all()


def test_too_small_an_image() -> None:
    with pytest.raises(ValueError, match="images of 32×32 are too small for AlexNet with kernel 11, stride 4"):
        AlexNetConfig((3, 32, 32))
