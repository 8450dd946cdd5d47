from __future__ import annotations

import pytest
import torch

from descend.data.images.labelled import Images, Preprocessing
from descend.interpret.grad_cam import grad_cam
from descend.interpret.layers import find_last_maps, list_maps
from descend.models import make_model, vit
from descend.models.lenet import LeNet, LeNetConfig
from descend.models.mlp import MLP, MLPConfig
from descend.models.resnet import ResNetConfig
from descend.report.exhibits import make_section
from descend.views.images import find_heat, look_inside
from descend.weights.labels import Labels
from tests.close import close

LABELS = ("a", "b", "c")


@pytest.mark.system("filter-visualization")
@pytest.mark.system("filter-visualization", "report")
@pytest.mark.parametrize("channels", [1, 3])
def test_a_report_shows_the_inside(channels: int) -> None:
    torch.manual_seed(0)
    random = torch.Generator().manual_seed(0)
    images = Images(torch.rand(12, channels, 14, 14, generator=random), torch.arange(12) % 3, torch.arange(12))
    model = LeNet(LeNetConfig(image=(channels, 14, 14), classes=3, kernel=3)).eval()
    prepare = Preprocessing((channels, 14, 14), (0.5,) * channels, (0.3,) * channels, LABELS)
    with torch.no_grad():
        shown = look_inside(model, images, prepare)
    titles = [e.title for e in shown]
    assert titles == [
        "First-layer filters", "Feature maps", "Class activation heat maps", "Embeddings",
    ]  # fmt: skip
    for exhibit in shown:
        assert "could not be drawn" not in make_section(exhibit)
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.system("filter-visualization")
def test_the_heat_fits_the_network() -> None:
    torch.manual_seed(0)
    model, x = LeNet(LeNetConfig(image=(1, 14, 14), classes=3, kernel=3)).eval(), torch.randn(2, 1, 14, 14)
    heat, how = find_heat(model, x)
    assert how == "Grad-CAM at layer c3"
    close(heat, grad_cam(model, x, name="c3"))
    dense = MLP(MLPConfig(inputs=196, outputs=3))
    assert find_heat(dense, x)[1] == "gradient at the pixels"


def test_a_transformer_is_looked_at_through_its_attention() -> None:
    torch.manual_seed(0)
    net, x = vit.ViTForImageClassification(vit.TINY).eval(), vit.TINY_INPUT()
    heat, how = find_heat(net, x)
    assert how == "attention rollout"
    assert heat.shape == (len(x), *x.shape[-2:])


def test_the_heat_is_taken_where_there_still_is_a_map() -> None:
    """A residual network ends in maps of 1×1 for small images, which say nothing of where."""
    torch.manual_seed(0)
    config = ResNetConfig(stem=4, widths=(4, 6, 8), depths=(1, 1, 1), block="basic", labels=Labels(LABELS))
    model, x = make_model(config).eval(), torch.randn(2, 3, 32, 32)
    sizes = list_maps(model, x)
    assert min(min(size) for size in sizes.values()) < 4
    layer = find_last_maps(model, x)
    assert min(sizes[layer]) >= 4
    assert "shortcut" not in layer
    assert find_heat(model, x)[1] == f"Grad-CAM at layer {layer}"
    assert find_last_maps(model, x, least=33) == ""
