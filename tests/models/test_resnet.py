"""ResNets: transformers both ways, torchvision's layout, published tables, nets for small images, twins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import descend
from descend.errors import Mistake
from descend.models.plain_net import SIZES as PLAIN
from descend.models.plain_net import PlainNet, PlainNetConfig
from descend.models.preactivation_resnet import TINY as PREACTIVATION
from descend.models.preactivation_resnet import PreactivationResNet
from descend.models.resnet import SIZES, TINY, TORCHVISION, ResNet, ResNetConfig
from descend.models.resnet_cifar import BLOCKS, ResNetCifar, ResNetCifarConfig
from descend.models.resnet_cifar import SIZES as CIFAR
from descend.nn.convolution.residual import BasicBlock, BottleneckBlock
from descend.weights.flat import read_flat, write_flat
from descend.weights.labels import Labels
from tests.close import close
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")

FORMS: dict[str, dict[str, Any]] = {
    "basic": {"layer_type": "basic", "hidden_sizes": [8, 12, 16], "depths": [2, 1, 1]},
    "basic, halved first": {
        "layer_type": "basic", "hidden_sizes": [8, 12], "depths": [1, 2], "downsample_in_first_stage": True,
    },
    "bottleneck": {"layer_type": "bottleneck", "hidden_sizes": [8, 16], "depths": [2, 2]},
    "bottleneck, 1×1 strides": {
        "layer_type": "bottleneck", "hidden_sizes": [8, 16], "depths": [1, 2], "downsample_in_bottleneck": True,
    },
}  # fmt: skip


def images(n: int = 2, channels: int = 3, side: int = 32, seed: int = 0) -> Tensor:
    return torch.randn(n, channels, side, side + 3, generator=torch.Generator().manual_seed(seed))


def peer(form: str) -> Any:
    config = transformers.ResNetConfig(num_channels=3, embedding_size=8, num_labels=3, **FORMS[form])
    model = random_peer(transformers.ResNetForImageClassification, config)
    random = torch.Generator().manual_seed(3)
    for name, t in model.named_buffers():  # running moments of a trained net
        if "running" in name:
            t.add_(torch.rand(t.shape, generator=random))
    return model


@pytest.mark.system("resnet")
@pytest.mark.system("resnet", "files", "pyramid")
@pytest.mark.parametrize("form", FORMS)
def test_both_ways(form: str, tmp_path: Path) -> None:
    theirs, x = peer(form), images()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x), lambda m: m(x).logits)
    close(ours.maps(x), theirs.resnet(x).last_hidden_state)
    close(ours.features(x), theirs.resnet(x).pooler_output.flatten(1))
    for m, f in zip(ours.pyramid(x), theirs.resnet(x, output_hidden_states=True).hidden_states[1:], strict=True):
        close(m, f)
    assert ours.config.labels == Labels(("LABEL_0", "LABEL_1", "LABEL_2"))


@pytest.mark.system("resnet")
def test_a_training_step_is_theirs(tmp_path: Path) -> None:
    """Gradients and running moments in training mode."""
    theirs, x = peer("bottleneck"), images(4, side=40)
    theirs.save_pretrained(tmp_path)
    ours: Any = descend.load(tmp_path).train()
    theirs.train()
    (ours(x) * torch.arange(3)).sum().backward()
    (theirs(x).logits * torch.arange(3)).sum().backward()
    a, b = ours.stages[1][0].conv_2, theirs.resnet.encoder.stages[1].layers[0].layer[1]
    close(a.conv.weight.grad, b.convolution.weight.grad, loosen=10)  # sums over a batch through seven batch norms
    close(a.norm.running_var, b.normalization.running_var)
    assert int(a.norm.num_batches_tracked) == 1


class Oracle(nn.Module):
    """A net under torchvision's public names, written down independently: layer1..4, conv1, bn1, downsample, fc."""

    def __init__(self, widths: tuple[int, ...], inner: int, depths: tuple[int, ...]):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8)
        before = 8
        for i, (width, depth) in enumerate(zip(widths, depths, strict=True)):
            blocks = []
            for j in range(depth):
                block, stride, mid = nn.Module(), 2 if i and not j else 1, width // inner
                shapes = [(before, mid, 3, stride), (mid, width, 3, 1)]
                if inner == 4:
                    shapes = [(before, mid, 1, 1), (mid, mid, 3, stride), (mid, width, 1, 1)]
                for n, (a, b, k, s) in enumerate(shapes, start=1):
                    block.add_module(f"conv{n}", nn.Conv2d(a, b, k, s, k // 2, bias=False))
                    block.add_module(f"bn{n}", nn.BatchNorm2d(b))
                if stride != 1 or before != width:
                    block.downsample = nn.Sequential(
                        nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width)
                    )
                blocks.append(block)
                before = width
            self.add_module(f"layer{i + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(before, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.max_pool2d(self.bn1(self.conv1(x)).relu(), 3, 2, 1)
        for name, layer in self.named_children():
            for block in layer.children() if name.startswith("layer") else ():
                parts = dict(block.named_children())
                skip, convs = parts.get("downsample", nn.Identity())(x), sum(n.startswith("conv") for n in parts)
                for n in range(1, convs + 1):
                    x = parts[f"bn{n}"](parts[f"conv{n}"](x))
                    x = x.relu() if n < convs else x
                x = (x + skip).relu()
        found: Tensor = self.fc(x.mean((2, 3)))
        return found


@pytest.mark.system("resnet")
@pytest.mark.system("resnet", "files")
@pytest.mark.parametrize(
    ("block", "inner", "widths"), [("basic", 1, (8, 12, 16, 20)), ("bottleneck", 4, (16, 24, 32, 40))]
)
@pytest.mark.parametrize("name", ["net.pth", "net.safetensors"])
def test_the_layout_of_torchvision(block: str, inner: int, widths: Any, name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    theirs, x = Oracle(widths, inner, (2, 1, 2, 1)), images(side=65)
    theirs(x)  # running moments away from 0 and 1
    theirs.eval()
    config = ResNetConfig(stem=8, widths=widths, depths=(2, 1, 2, 1), block=block, labels=Labels(tuple("abcde")))
    ours = ResNet(config).eval()
    torch.save(theirs.state_dict(), tmp_path / "theirs.pth")
    read_flat(ours, tmp_path / "theirs.pth", TORCHVISION)
    with torch.no_grad():
        close(ours(x), theirs(x))
    write_flat(ours, tmp_path / name, TORCHVISION)
    read_flat(ResNet(config), tmp_path / name, TORCHVISION)
    if name.endswith("pth"):
        again = torch.load(tmp_path / name, weights_only=True)
        assert again.keys() == theirs.state_dict().keys()
        assert all(torch.equal(again[k], t) for k, t in theirs.state_dict().items())
    with pytest.raises(Mistake, match="this ResNet"):
        read_flat(ResNet(replace(config, depths=(1, 1, 1, 1))), tmp_path / name, TORCHVISION)


@pytest.mark.system("resnet")
@pytest.mark.system("resnet", "depths", "maps", "parameters", "pyramid")
def test_the_published_tables() -> None:
    """Depths in the names, F2 .. F5 of ResNet-50 at 224, and its parameters part by part (MF 22.2)."""
    assert [(name, config.layers) for name, config in SIZES.items()] == [
        (f"resnet-{n}", n) for n in (18, 34, 50, 101, 152)
    ]
    with torch.device("meta"):
        model = ResNet(SIZES["resnet-50"])
        maps = model.pyramid(torch.empty(1, 3, 224, 224))
    assert [tuple(m.shape[1:]) for m in maps] == [(256, 56, 56), (512, 28, 28), (1024, 14, 14), (2048, 7, 7)]
    counts = {
        kind: sum(p.numel() for m in model.modules() if isinstance(m, kind) for p in m.parameters())
        for kind in (nn.Conv2d, nn.BatchNorm2d, nn.Linear)
    }
    assert list(counts.values()) == [23_454_912, 53_120, 2_049_000]


@pytest.mark.system("bottleneck-block", "stage")
@pytest.mark.system("resnet")
def test_shortcuts_every_two_or_three_layers() -> None:
    """Identities everywhere but where shapes change: basic stages 2-4, bottleneck stages 1-4."""
    for name, kind, first in (("resnet-34", BasicBlock, 1), ("resnet-101", BottleneckBlock, 0)):
        with torch.device("meta"):
            model = ResNet(SIZES[name])
        for s, stage in enumerate(model.stages):
            for j, block in enumerate(stage.children()):
                assert type(block) is kind
                assert isinstance(block.shortcut, nn.Identity) == (j > 0 or s < first)


@pytest.mark.system("resnet")
@pytest.mark.system("resnet", "small-images")
@pytest.mark.parametrize("name", [n for n in CIFAR if n.startswith("resnet")])
def test_nets_for_small_images(name: str) -> None:
    """He et al. (2015), table 6: 0.27, 0.46, 0.66, 0.85 and 1.7 million parameters for 6n + 2 layers."""
    published = {20: "0.27", 32: "0.46", 44: "0.66", 56: "0.85", 110: "1.7"}
    with torch.device("meta"):
        model = ResNetCifar(CIFAR[name])
        maps = model.maps(torch.empty(1, 3, 32, 32))
    layers = int(name.removeprefix("resnet-"))
    count = sum(p.numel() for p in model.parameters()) / 1e6
    assert f"{count:.{len(published[layers]) - 2}f}" == published[layers]
    assert maps.shape == (1, 64, 8, 8)
    weighted = [m for m in model.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len(weighted) == layers  # no projection: zeros are padded


@pytest.mark.system("resnet")
@pytest.mark.system("preactivation-block")
@pytest.mark.system("preactivation-block", "selectable")
@pytest.mark.parametrize("block", BLOCKS)
def test_every_placement_is_selectable(block: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = ResNetCifar(ResNetCifarConfig(image=(1, 8, 8), classes=4, layers=14, width=4, block=block))
    x = images(3, 1, 8)
    (model(x) * torch.arange(4)).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
    model.eval().save_pretrained(tmp_path)
    with torch.no_grad():
        assert torch.equal(descend.load(tmp_path)(x), model(x))
        close(model.head(model.maps(x).mean((2, 3))), model(x))


@pytest.mark.system("degradation-experiment", "twins")
@pytest.mark.system("resnet")
@pytest.mark.system("resnet", "plain-twin")
def test_the_plain_twins() -> None:
    """Equal weights but for the projections; with option A exactly equal. Only the sum is missing."""
    for ours, twin in (("resnet-20", "plain-20"), ("resnet-56", "plain-56")):
        with torch.device("meta"):
            a, b = ResNetCifar(CIFAR[ours]), ResNetCifar(CIFAR[twin])
        assert a.state_dict().keys() == b.state_dict().keys()
    config = ResNetConfig(stem=4, widths=(4, 8), depths=(1, 1), block="basic", labels=Labels(("a", "b")))
    residual = ResNet(config).eval()
    plain = PlainNet(PlainNetConfig((3, 32, 35), 2, 4, (4, 8), (1, 1))).eval()
    missing = plain.load_state_dict(residual.state_dict(), strict=False)
    assert {k.split(".")[3] for k in missing.unexpected_keys} == {"shortcut"}
    assert not missing.missing_keys
    with torch.no_grad():
        for stage in residual.stages:
            stage[0].shortcut = Nothing()  # type: ignore[index]
        close(plain(images()), residual(images()))


@pytest.mark.system("resnet")
@pytest.mark.system("resnet", "plain-twin")
def test_plain_34_is_resnet_34_without_shortcuts() -> None:
    """Every weight has its twin; ResNet-34 has the three projections more: 64·128 + 128·256 + 256·512, and norms."""
    with torch.device("meta"):
        plain, residual = PlainNet(PLAIN["plain-34"]), ResNet(SIZES["resnet-34"])
    ours, theirs = ({k: v.shape for k, v in m.state_dict().items()} for m in (plain, residual))
    more = theirs.keys() - ours.keys()
    assert ours == {k: v for k, v in theirs.items() if k not in more}
    assert {k.split(".")[3] for k in more} == {"shortcut"}
    counts = [sum(p.numel() for p in m.parameters()) for m in (plain, residual)]
    assert counts == [21_797_672 - sum(a * 2 * a + 4 * a for a in (64, 128, 256)), 21_797_672]


class Nothing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.new_zeros(())


@pytest.mark.system("preactivation-block")
@pytest.mark.system("preactivation-block", "pure-identity")
def test_the_stream_of_a_preactivation_net_is_a_sum() -> None:
    """Inside a stage, the last maps minus the first are the sum of the branches."""
    torch.manual_seed(0)
    model: Any = PreactivationResNet(PREACTIVATION).eval()
    x = nn.functional.max_pool2d(model.stem(images()), 3, 2, 1)
    with torch.no_grad():
        first, second = model.stages[0]
        start = first(x)
        close(second(start) - start, second.branch(start))
        close(start, first.shortcut(x) + first.branch(x))


@pytest.mark.system("resnet")
def test_memory_layout_changes_no_numbers() -> None:
    """Images in either layout, whole or one by one: the same answers; weights stay as files have them."""
    torch.manual_seed(0)
    model, x = ResNet(TINY).eval(), images(5)
    assert all(p.is_contiguous() for p in model.parameters())
    with torch.no_grad():
        close(model(x.contiguous(memory_format=torch.channels_last)), model(x))
        close(torch.cat([model(one[None]) for one in x]), model(x))


@pytest.mark.system("resnet")
@pytest.mark.system("resnet", "learns")
def test_it_overfits_a_batch() -> None:
    torch.manual_seed(0)
    model = ResNetCifar(ResNetCifarConfig(image=(1, 8, 8), classes=4, layers=8, width=8))
    x, y = images(16, 1, 8), torch.arange(16) % 4
    rule = torch.optim.SGD(model.parameters(), 0.05, 0.9)
    for _ in range(25):
        rule.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        rule.step()
    assert loss < 0.05


@pytest.mark.parametrize("block", ["plain", "preactivation"])
def test_a_stem_of_stride_two_and_the_greatest_value_of_each_map(block: str) -> None:
    torch.manual_seed(0)
    config = ResNetCifarConfig(image=(1, 8, 8), classes=4, layers=8, width=4, block=block, stride=2, pool="max")
    model, x = ResNetCifar(config).eval(), torch.randn(3, 1, 8, 8)
    with torch.no_grad():
        assert model.maps(x).shape == (3, 16, 1, 1) == model.maps(x[..., :7, :7]).shape
        wide = torch.cat([x, x], dim=3)
        close(model.features(wide), model.maps(wide).flatten(2).max(2).values)


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="21 layers are not 6n \\+ 2; the nearest is 20"):
        ResNetCifarConfig(layers=21)
    for config in (ResNetCifarConfig, ResNetConfig, type(PREACTIVATION)):
        with pytest.raises(ValueError, match="block 'wide' is unknown"):
            config(block="wide")
