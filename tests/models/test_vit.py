"""ViT against transformers' own, both ways; at another resolution; attention maps; transfer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import descend
from descend.errors import Mistake
from descend.losses.classification import cross_entropy
from descend.models.vit import TINY, ViT, ViTConfig, ViTForImageClassification, fine_tuned
from descend.nn.attention.maps import attention_maps
from descend.weights.labels import Labels
from tests.close import close
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")


def peer(architecture: str, **other: Any) -> Any:
    config = transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=16, patch_size=4,
        num_labels=5, **other,
    )  # fmt: skip
    return random_peer(getattr(transformers, architecture), config)


def images(side: int = 16, b: int = 3) -> Tensor:
    return torch.randn(b, 3, side, side, generator=torch.Generator().manual_seed(1))


@pytest.mark.system("vit")
@pytest.mark.system("vit", "transformers")
@pytest.mark.system("patch-embedding")
@pytest.mark.system("class-token")
def test_classifier_both_ways(tmp_path: Path) -> None:
    theirs, x = peer("ViTForImageClassification"), images()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x), lambda m: m(pixel_values=x).logits)
    ours(x).square().mean().backward()
    theirs(pixel_values=x).logits.square().mean().backward()
    close(ours.embed.positions.grad, theirs.vit.embeddings.position_embeddings.grad)
    close(ours.embed.patches.weight.grad, theirs.vit.embeddings.patch_embeddings.projection.weight.grad)


@pytest.mark.system("vit")
@pytest.mark.system("vit", "transformers")
@pytest.mark.system("class-token")
@pytest.mark.system("class-token", "pooled")
def test_bare_model_both_ways(tmp_path: Path) -> None:
    theirs, x = peer("ViTModel"), images()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x).pooled, lambda m: m(pixel_values=x).pooler_output)
    assert isinstance(ours, ViT)
    with torch.no_grad():
        close(ours(x).hidden, theirs(pixel_values=x).last_hidden_state)


@pytest.mark.system("vit-pretrain-finetune")
@pytest.mark.system("vit-pretrain-finetune", "resolution", "same-grid")
@pytest.mark.parametrize("side", [8, 24, 28])
def test_another_resolution(side: int, tmp_path: Path) -> None:
    """Positions interpolated as transformers does; the class position and all else stay bit for bit."""
    theirs, x = peer("ViTForImageClassification"), images(side)
    theirs.save_pretrained(tmp_path)
    ours: Any = descend.load(tmp_path)
    other = ours.at_side(side)
    with torch.no_grad():
        close(other(x), theirs(pixel_values=x, interpolate_pos_encoding=True).logits)
    assert torch.equal(other.embed.positions[:, 0], ours.embed.positions[:, 0])
    same = ours.at_side(16)
    assert all(torch.equal(a, b) for a, b in zip(same.parameters(), ours.parameters(), strict=True))


@pytest.mark.system("vit")
@pytest.mark.system("vit", "maps")
def test_attention_maps(tmp_path: Path) -> None:
    theirs, x = peer("ViTForImageClassification", attn_implementation="eager"), images()
    theirs.save_pretrained(tmp_path)
    found = list(attention_maps(descend.load(tmp_path), x).values())
    expected = theirs(pixel_values=x, output_attentions=True).attentions
    assert len(found) == 2
    for ours, reference in zip(found, expected, strict=True):
        close(ours, reference.detach())


@pytest.mark.system("vit")
@pytest.mark.system("vit", "maps", "head-gradient")
def test_features_maps_and_the_head_gradient() -> None:
    """Logits are the head of the class token's vector; dW_head = (p − y) h_clsᵀ, averaged."""
    torch.manual_seed(0)
    model, x, y = ViTForImageClassification(TINY).double(), images(12).double(), torch.tensor([0, 1, 1])
    assert model.maps(x).shape == (3, 32, 3, 3)
    close(model.maps(x)[:, :, 1, 2], model.tokens(x)[:, 1 + 5])
    h, logits = model.features(x), model(x)
    close(logits, model.head(h))
    cross_entropy(logits, y).mean().backward()
    p = logits.softmax(-1) - torch.nn.functional.one_hot(y, 2)
    close(model.head.weight.grad, (p[:, :, None] * h[:, None, :]).mean(0))


@pytest.mark.system("vit")
def test_what_nobody_reads_is_left_out_in_training() -> None:
    """The last block computes the class token only: the same logits and gradients as with all tokens."""
    torch.manual_seed(0)
    model, x = ViTForImageClassification(TINY).double(), images(12).double()
    found = []
    for short in (True, False):
        model.zero_grad()
        logits = model.train(short)(x)
        logits.square().mean().backward()
        found.append([logits, *(p.grad for p in model.parameters())])
    for a, b in zip(*found, strict=True):
        close(a, b)
    seen: list[Tensor] = []
    model.encoder.blocks[-1].register_forward_hook(lambda _, given, out: seen.append(out))
    model.train()(x), model.eval()(x)
    assert [len(out[0]) for out in seen] == [1, 10]


@pytest.mark.system("vit")
@pytest.mark.system("vit", "order")
def test_patches_moved_with_their_positions() -> None:
    from descend.nn.patches import patchify, unpatchify

    torch.manual_seed(0)
    model, x, order = ViTForImageClassification(TINY).double(), images(12).double(), torch.randperm(9)
    expected = model(x)
    with torch.no_grad():
        model.embed.positions[:, 1:] = model.embed.positions[:, 1:][:, order]
    close(model(unpatchify(patchify(x, 4)[:, order], 4, (3, 3))), expected)


@pytest.mark.system("vit")
@pytest.mark.system("vit", "learns")
def test_it_overfits_a_batch() -> None:
    """A dozen noisy images of 32 × 32 pixels in patches of 4, by heart."""
    torch.manual_seed(0)
    config = ViTConfig(3, 32, 4, 32, 2, 4, 64, labels=Labels(tuple("abc")))
    model, x, y = ViTForImageClassification(config), torch.randn(12, 3, 32, 32), torch.arange(12) % 3
    fit(model, x, y, steps=30, lr=3e-3)
    assert cross_entropy(model(x), y).mean() < 0.1
    assert torch.equal(model(x).argmax(-1), y)


def stripes(n: int, side: int, classes: int, seed: int) -> tuple[Tensor, Tensor]:
    """Stripes of different directions, in noise."""
    random = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (n,), generator=random)
    angle, phase = y * torch.pi / classes, 6.28 * torch.rand(n, generator=random)
    at = torch.linspace(0, 9, side)
    wave = angle.cos()[:, None, None] * at[:, None] + angle.sin()[:, None, None] * at
    noise = torch.randn(n, 1, side, side, generator=random)
    return (wave + phase[:, None, None]).sin()[:, None] + noise, y


def fit(model: ViTForImageClassification, x: Tensor, y: Tensor, steps: int, lr: float) -> None:
    rule = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr)
    for _ in range(steps):
        rule.zero_grad()
        cross_entropy(model(x), y).mean().backward()
        rule.step()


@pytest.mark.system("vit")
@pytest.mark.system("vit-pretrain-finetune")
@pytest.mark.system("vit-pretrain-finetune", "classes", "frozen", "few-examples")
@pytest.mark.parametrize("seed", [0, 3, 6])
def test_pretrained_then_other_classes_at_another_side(seed: int) -> None:
    """Both modes of S940 8.6 beat training from nothing on 12 examples; a frozen transformer does not change."""
    torch.manual_seed(seed)
    config = ViTConfig(1, 12, 4, 32, 1, 4, 64, labels=Labels(tuple("abcd")))
    source = ViTForImageClassification(config)
    fit(source, *stripes(512, 12, 4, seed), steps=60, lr=3e-3)
    few, held = stripes(12, 16, 3, seed + 1), stripes(300, 16, 3, seed + 2)
    labels, accuracy = Labels(tuple("xyz")), {}
    models = {"frozen": fine_tuned(source, 16, labels), "all": fine_tuned(source, 16, labels)}
    models["frozen"].requires_grad_(False).head.requires_grad_(True)
    models["nothing"] = ViTForImageClassification(models["all"].config)
    before = {k: v.clone() for k, v in models["frozen"].state_dict().items()}
    close(before["embed.cls"], source.embed.cls.detach())
    for name, model in models.items():
        fit(model, *few, steps=30, lr=1e-2 if name == "frozen" else 1e-3)
        with torch.no_grad():
            accuracy[name] = float((model(held[0]).argmax(-1) == held[1]).float().mean())
    after = models["frozen"].state_dict()
    assert [k for k, v in before.items() if not torch.equal(v, after[k])] == ["head.weight", "head.bias"]
    assert accuracy["frozen"] > accuracy["nothing"] + 0.1
    assert accuracy["all"] > accuracy["nothing"] + 0.1


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [("qkv_bias", False, "qkv_bias = False is not supported"), ("patch_size", 5, "do not tile")],
)
def test_files_that_are_not_understood(name: str, value: object, told: str, tmp_path: Path) -> None:
    peer("ViTForImageClassification").save_pretrained(tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**values, name: value}))
    with pytest.raises(Mistake, match=told):
        descend.load(tmp_path)


def test_sides_written_twice(tmp_path: Path) -> None:
    peer("ViTForImageClassification").save_pretrained(tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**values, "image_size": [16, 16], "patch_size": [4, 4]}))
    assert descend.load(tmp_path).config.side == 16
