"""VGG with and without batch norm against plain networks with torchvision's names."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.models import vgg, vgg_bn
from descend.models.vgg import VGG, VGGConfig
from descend.models.vgg_bn import VGGBN, VGGBNConfig
from descend.theory.convolution import receptive_field
from descend.weights.flat import read_flat, write_flat
from descend.weights.rules import find
from tests.close import close

pytestmark = pytest.mark.system("vgg")
DATA = Path(__file__).parent / "data" / "torchvision_keys.json"
CONVS, WIDTHS = (1, 2, 1), (4, 6, 5)


class Plain(nn.Module):
    """The public layout: features.N in order of use, classifier.0, .3 and .6."""

    def __init__(self, norm: bool):
        super().__init__()
        layers: list[nn.Module] = []
        table: list[int | None] = [3, 4, None, 6, 6, None, 5, None]
        at = [n for n in table if n]
        units = iter(pairwise(at))
        for entry in table[1:]:
            if entry is None:
                layers += [nn.MaxPool2d(2, 2)]
                continue
            layers += [nn.Conv2d(*next(units), 3, 1, 1)]
            layers += [nn.BatchNorm2d(entry)] if norm else []
            layers += [nn.ReLU()]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Linear(5 * 4, 10), nn.ReLU(), nn.Dropout(), nn.Linear(10, 10), nn.ReLU(), nn.Dropout(), nn.Linear(10, 7)
        )

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.classifier(F.adaptive_avg_pool2d(self.features(x), 2).flatten(1))
        return y


CASES: list[Any] = [
    pytest.param(VGG, VGGConfig((3, 21, 26), 7, CONVS, WIDTHS, 2, 10), vgg.TORCHVISION, id="plain"),
    pytest.param(VGGBN, VGGBNConfig((3, 21, 26), 7, CONVS, WIDTHS, 2, 10), vgg_bn.TORCHVISION, id="batch norm"),
]


@pytest.mark.system("vgg", "public-files")
@pytest.mark.parametrize(("kind", "config", "rules"), CASES)
def test_public_files_both_ways(kind: type[VGG], config: VGGConfig, rules: list[Any], tmp_path: Path) -> None:
    torch.manual_seed(0)
    theirs, x = Plain(kind is VGGBN).double(), torch.randn(4, 3, 21, 26, dtype=torch.float64)
    with torch.no_grad():
        for p in theirs.parameters():
            p.add_(0.3 * torch.randn_like(p))
    theirs(x)  # moves the running means
    torch.save(theirs.eval().state_dict(), tmp_path / "public.pth")
    ours = kind(config).double().eval()
    read_flat(ours, tmp_path / "public.pth", rules)
    close(ours(x), theirs(x))
    write_flat(ours, tmp_path / "back.pth", rules)
    theirs.load_state_dict(torch.load(tmp_path / "back.pth", weights_only=True))
    close(ours(x), theirs(x))


@pytest.mark.system("vgg", "public-files")
@pytest.mark.parametrize(
    ("public", "kind", "config", "rules"),
    [
        ("vgg16", VGG, vgg.SIZES["vgg-16"], vgg.TORCHVISION),
        ("vgg11_bn", VGGBN, vgg_bn.SIZES["vgg-11-bn"], vgg_bn.TORCHVISION),
    ],
)
def test_names_and_shapes_of_the_public_files(public: str, kind: type[VGG], config: Any, rules: list[Any]) -> None:
    with torch.device("meta"):
        model = kind(config)
    ours = {}
    for name, tensor in model.state_dict().items():
        found = find(name, rules, "ours")
        assert found is not None
        ours[found[1]] = "x".join(map(str, tensor.shape))
    assert ours == dict(line.split(" ") for line in json.loads(DATA.read_text())["keys"][public])


@pytest.mark.system("vgg", "layers")
@pytest.mark.parametrize(("size", "layers"), [("vgg-11", 11), ("vgg-13", 13), ("vgg-16", 16), ("vgg-19", 19)])
def test_published_layers(size: str, layers: int) -> None:
    with torch.device("meta"):
        model = VGG(vgg.SIZES[size])
        x = torch.zeros(1, 3, 224, 224)
        assert model.maps(x).shape == (1, 512, 7, 7)
        assert model.features(x).shape == (1, 4096)
    learnable = [m for m in model.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len(learnable) == layers
    assert {m.kernel_size for m in learnable if isinstance(m, nn.Conv2d)} == {(3, 3)}


@pytest.mark.system("vgg", "erratum")
def test_vgg_19_has_one_more_convolution_in_each_of_three_blocks() -> None:
    """Not three more at the end, as DLN has it."""
    more = [b - a for a, b in zip(vgg.CONVS["vgg-16"], vgg.CONVS["vgg-19"], strict=True)]
    assert more == [0, 0, 1, 1, 1]
    with torch.device("meta"):
        at_the_end = VGG(VGGConfig(convs=(2, 2, 3, 3, 6)))
    assert sum(p.numel() for p in at_the_end.parameters()) == 145_436_968 != vgg.PARAMETERS["vgg-19"]


@pytest.mark.system("vgg", "small-kernels")
def test_two_small_kernels_see_what_one_larger_sees() -> None:
    """5×5 pixels, measured by the gradient of one output of a block's two convolutions."""
    model = VGG(VGGConfig((1, 16, 16), 2, (2,), (3,), 1, 4)).double()
    with torch.no_grad():
        for p in model.layers.parameters():
            p.fill_(0.1)  # no ReLU is shut
    x = torch.ones(1, 1, 16, 16, dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(model.layers[:3](x)[0, 0, 8, 8], x)
    rows, columns = g[0, 0].nonzero().T
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (6, 10, 6, 10)
    assert receptive_field([(3,), (3,)]).size == 5


@pytest.mark.system("vgg", "narrow")
@pytest.mark.parametrize("kind", [VGG, VGGBN])
def test_a_narrow_one_learns(kind: type[VGG]) -> None:
    torch.manual_seed(0)
    config = kind.Config((3, 16, 16), 4, (1, 1, 2), (8, 16, 16), 1, 32, 0.0)
    model, x, y = kind(config), torch.randn(16, 3, 16, 16), torch.arange(16) % 4
    for dense in (model.f6, model.f7, model.head):
        nn.init.kaiming_normal_(dense.weight)  # the published 0.01 is for 4096 units
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(40):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1


def test_what_cannot_be() -> None:
    with pytest.raises(ValueError, match="images of 31×40 are too small for 5 pools"):
        VGGConfig((3, 31, 40))
    with pytest.raises(ValueError, match="2 blocks of convolutions, but 5 widths"):
        VGGConfig(convs=(1, 1))
