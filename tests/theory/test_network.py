"""The table of any network: torch's own FLOP count, published totals, fields computed and measured."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from descend.theory.convolution import conv_flops
from descend.theory.network import layers, measure_field


class Branches(nn.Module):
    """Two branches that meet in a sum and a concatenation, a strided shortcut, dilation, norms, pools."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 5, 2, 2)
        self.norm = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(3, 2, 1)
        wide, tall = nn.Conv2d(8, 8, 3, padding=2, dilation=2), nn.Conv2d(8, 8, (3, 1), padding=(1, 0))
        self.long = nn.Sequential(wide, nn.ReLU(), tall)
        self.short = nn.Conv2d(8, 8, 1)
        self.average = nn.AvgPool2d(2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.norm(self.stem(x)).relu())
        x = self.long(x) + self.short(x)
        return self.average(torch.cat([x, x.tanh()], 1))


def torch_count(model: nn.Module, x: Tensor) -> int:
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # torch counts nothing inside its fused encoder layer
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        model(x)
    torch.backends.mha.set_fastpath_enabled(fused)
    return counter.get_total_flops()


@pytest.mark.system("receptive-field")
@pytest.mark.system("conv2d-layer")
@pytest.mark.system("conv2d-layer", "flops")
def test_flops_and_parameters_are_torchs() -> None:
    attention = nn.Sequential(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), nn.Linear(16, 3)).train()
    for model, x in ((Branches(), torch.zeros(2, 3, 33, 40)), (attention, torch.zeros(2, 7, 16))):
        found = layers(model, x)
        model.eval()
        assert found.flops == torch_count(model, x)
        assert found.parameters == sum(p.numel() for p in model.parameters())
    stem = layers(Branches(), torch.zeros(1, 3, 32, 32)).layers[0]
    assert stem.flops == conv_flops(3, 8, (5, 5), (16, 16))
    assert stem.output == (1, 8, 16, 16)


@pytest.mark.system("conv2d-layer")
@pytest.mark.system("conv2d-layer", "resnet-50")
def test_published_total_of_resnet_50() -> None:
    """MF-C.3: 4,089,184,256 multiplications at 224 pixels, 8,178,368,512 FLOPs; on the meta device nothing is run."""
    from transformers import ResNetConfig, ResNetForImageClassification

    with torch.device("meta"):
        model = ResNetForImageClassification(ResNetConfig(num_labels=1000))
        found = layers(model, torch.zeros(1, 3, 224, 224))
    assert (found.flops, found.parameters) == (2 * 4_089_184_256, 25_557_032)
    assert [row.field for row in found.layers if row.kind == "MaxPool2d"] == ["11×11"]
    assert found.layers[-1].field == "all"


@pytest.mark.system("receptive-field")
@pytest.mark.system("receptive-field", "measured")
def test_computed_field_is_the_measured_one() -> None:
    torch.manual_seed(0)
    model = Branches().double().eval()
    model.norm.running_var.fill_(2.0)
    found = layers(model, torch.zeros(1, 3, 120, 120, dtype=torch.float64)).layers[-1].field
    assert found == "×".join(map(str, measure_field(model, (3, 120, 120), trials=64)))
    # 5 + 2·2 after the pool, then jump 4: dilation adds 16, the column kernel 8, the average 4 (rows 37, columns 29)
    assert found == "37×29"


@pytest.mark.system("receptive-field")
@pytest.mark.system("receptive-field", "everything")
def test_what_sees_everything_says_so() -> None:
    def field(*modules: nn.Module) -> str:
        return layers(nn.Sequential(nn.Conv2d(2, 4, 3), *modules), torch.zeros(1, 2, 8, 8)).layers[-1].field

    assert field(nn.ReLU(), nn.Dropout()) == "3×3"
    assert field(nn.BatchNorm2d(4)) == "3×3"
    for module in (nn.GroupNorm(2, 4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.InstanceNorm2d(4), nn.LayerNorm(6)):
        assert field(module) == "all", module
    assert field(nn.ConvTranspose2d(4, 4, 2, 2)) == "?"
    assert field(nn.Upsample(scale_factor=2)) == "?"
    assert layers(nn.Linear(3, 2), torch.zeros(1, 3)).layers[-1].field == ""


def test_shared_layers_and_modes() -> None:
    """A weight that is used twice is counted once, its FLOPs twice; training modes and hooks are left as they were."""
    shared = nn.Linear(4, 4)
    model = nn.Sequential(shared, nn.ReLU(), shared, nn.Dropout())
    model[3].eval()
    found = layers(model, torch.zeros(2, 4))
    assert [row.parameters for row in found.layers] == [20, 0, 0, 0]
    assert [row.flops for row in found.layers] == [64, 0, 64, 0]
    assert [m.training for m in model] == [True, True, True, False]
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert "Linear" in str(found)
    assert found.table()["rows"][-1][3:5] == [20, 128]
    with pytest.raises(RuntimeError):
        layers(model, torch.zeros(2, 5))
    assert not any(m._forward_hooks for m in model.modules())


def test_own_attention_kernel_is_counted() -> None:
    """4 b h t s k, whether torch's products or the library's kernel compute it."""
    from descend.nn.attention.multi_head import CausalSelfAttention

    model = CausalSelfAttention(32, 4)
    rows = {row.name: row.flops for row in layers(model, torch.zeros(2, 6, 32)).layers}
    assert rows["(itself)"] == 4 * 2 * 32 * 6 * 6


def test_field_of_a_vector_is_refused() -> None:
    with pytest.raises(ValueError, match="maps"):
        measure_field(lambda x: x.flatten(1), (1, 4, 4))


@pytest.mark.system("receptive-field")
@pytest.mark.system("receptive-field", "depth-needed")
def test_far_pixels_meet_only_deep_in_a_convolutional_network() -> None:
    """S940-DLD.185: a label that depends on a pixel 6 away is out of reach of 5 layers of 3×3; 6 layers, or one layer
    of attention, see it."""
    torch.manual_seed(0)
    x = torch.randn(1, 4, 1, 15)
    far = x.clone()
    far[..., 13] += 1

    def changes(f: nn.Module, a: Tensor, b: Tensor) -> bool:
        return not torch.equal(f(a)[0, :, 0, 7], f(b)[0, :, 0, 7])

    for depth, sees in ((5, False), (6, True)):
        stack = nn.Sequential(*(nn.Conv2d(4, 4, 3, padding=1) for _ in range(depth)))
        assert changes(stack, x, far) is sees
    attention = nn.MultiheadAttention(4, 1, batch_first=True)
    tokens = (z[:, :, 0].mT for z in (x, far))
    ours, theirs = (attention(z, z, z, need_weights=False)[0][0, 7] for z in tokens)
    assert not torch.equal(ours, theirs)


class Glance(nn.Module):
    """One layer of attention over ten numbers with learned positions."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.positions = nn.Linear(1, 24), nn.Parameter(torch.randn(10, 24) / 2)
        self.attention, self.out = nn.MultiheadAttention(24, 1, batch_first=True), nn.Linear(24, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x.mT) + self.positions
        y: Tensor = self.out(self.attention(h, h, h, need_weights=False)[0])
        return y.mT


@pytest.mark.system("receptive-field")
@pytest.mark.system("receptive-field", "long-range-task")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_attention_learns_what_lies_beyond_the_field(seed: int) -> None:
    """S940-DLD.185, trained: say ten numbers backwards. Three layers of 3 see 3 to each side: the ends stay unknown."""
    torch.manual_seed(seed)
    convs = (nn.Conv1d(1, 24, 3, padding=1), nn.ReLU(), nn.Conv1d(24, 24, 3, padding=1), nn.ReLU())
    models = {"attention": Glance(), "convolutions": nn.Sequential(*convs, nn.Conv1d(24, 1, 3, padding=1))}
    errors = {}
    for name, model in models.items():
        rule = torch.optim.Adam(model.parameters(), 1e-2)
        for _ in range(150):
            x = torch.randn(64, 1, 10)
            rule.zero_grad()
            (model(x) - x.flip(-1)).square().mean().backward()
            rule.step()
        with torch.no_grad():
            x = torch.randn(500, 1, 10)
            errors[name] = (model(x) - x.flip(-1)).square().mean((0, 1))
    assert errors["attention"].max() < 0.05
    far = [0, 1, 2, 7, 8, 9]  # 5 and more away; the numbers have variance 1
    assert errors["convolutions"][far].min() > 0.8


def test_weighty_layers_alone() -> None:
    found = layers(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), torch.zeros(1, 3))
    assert [row.name for row in found.weighty.layers] == ["0"]
    assert found.weighty.flops == found.flops
