"""CLIP and its two encoders against transformers' own, both ways."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import descend
from descend.errors import Mistake
from descend.losses.contrastive import n_pair
from descend.models.clip import TINY, TINY_INPUT, Clip
from descend.models.clip_text_model import ClipTextModel
from descend.models.clip_vision_model import ClipVisionModel
from tests.close import close
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")

TEXT = {"vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "max_position_embeddings": 12, "bos_token_id": 59, "projection_dim": 16}  # fmt: skip
IMAGE = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3, "image_size": 12,
         "patch_size": 4, "projection_dim": 16}  # fmt: skip


def peer(end: int = 60, act: str = "quick_gelu") -> Any:
    text, image = TEXT | {"eos_token_id": end, "hidden_act": act}, IMAGE | {"hidden_act": act}
    config = transformers.CLIPConfig(text_config=text, vision_config=image, projection_dim=16)
    return random_peer(transformers.CLIPModel, config)


def tokens(end: int = 60) -> Tensor:
    """Two texts that end in the middle, once with the end token again behind it, and one that fills its row."""
    x = torch.randint(3, 58, (3, 9), generator=torch.Generator().manual_seed(1))
    x[0, 4:], x[1, 6], x[2, 8] = end, end, end
    return x


def pixels() -> Tensor:
    return torch.randn(4, 3, 12, 12, generator=torch.Generator().manual_seed(2))


@pytest.mark.system("clip")
@pytest.mark.system("clip", "transformers", "unit-vectors")
@pytest.mark.parametrize("act", ["quick_gelu", "gelu"])
def test_both_ways(act: str, tmp_path: Path) -> None:
    """Logits, unit vectors, the loss and gradients of both encoders."""
    theirs, x, w = peer(act=act), pixels(), tokens()
    ours = check_both_ways(
        theirs, tmp_path, lambda m: m(x, w), lambda m: m(input_ids=w, pixel_values=x).logits_per_image
    )
    out = theirs(input_ids=w, pixel_values=x[:3], return_loss=True)
    close(ours.encode_image(x[:3]), out.image_embeds)
    close(ours.encode_text(w), out.text_embeds)
    close(ours.encode_text(w).norm(dim=-1), torch.ones(3))
    loss = n_pair(ours(x[:3], w)).mean()
    close(loss, out.loss)
    loss.backward()
    out.loss.backward()
    close(ours.scale.grad, theirs.logit_scale.grad)
    close(ours.image.patches.weight.grad, theirs.vision_model.embeddings.patch_embedding.weight.grad)
    close(ours.text.token.weight.grad, theirs.text_model.embeddings.token_embedding.weight.grad)


@pytest.mark.system("clip")
@pytest.mark.system("clip", "causal-text")
def test_the_end_of_older_files_is_the_highest_token(tmp_path: Path) -> None:
    """eos_token_id = 2, as the released checkpoints say, though their end token is the last of the vocabulary."""
    theirs, x, w = peer(end=2), pixels(), tokens(60)
    ours = check_both_ways(
        theirs, tmp_path, lambda m: m(x, w), lambda m: m(input_ids=w, pixel_values=x).logits_per_image
    )
    assert ours.config.text.end == 2
    changed = w.clone()
    changed[0, 5:] = 7  # behind the end
    close(ours.encode_text(changed), ours.encode_text(w))


@pytest.mark.system("clip")
@pytest.mark.system("clip", "transformers")
@pytest.mark.parametrize("name", ["CLIPTextModel", "CLIPTextModelWithProjection"])
def test_the_text_encoder_alone(name: str, tmp_path: Path) -> None:
    config, w = transformers.CLIPTextConfig(**TEXT, eos_token_id=60), tokens()
    theirs = random_peer(getattr(transformers, name), config)
    if name == "CLIPTextModel":
        check_both_ways(theirs, tmp_path, lambda m: m(w).hidden, lambda m: m(w).last_hidden_state)
        check_both_ways(theirs, tmp_path, lambda m: m(w).pooled, lambda m: m(w).pooler_output)
    else:
        check_both_ways(theirs, tmp_path, lambda m: m(w), lambda m: m(w).text_embeds)


@pytest.mark.system("clip")
@pytest.mark.system("clip", "transformers")
@pytest.mark.parametrize("name", ["CLIPVisionModel", "CLIPVisionModelWithProjection"])
def test_the_image_encoder_alone(name: str, tmp_path: Path) -> None:
    config, x = transformers.CLIPVisionConfig(**IMAGE), pixels()
    theirs = random_peer(getattr(transformers, name), config)
    if name == "CLIPVisionModel":
        check_both_ways(theirs, tmp_path, lambda m: m(x).hidden, lambda m: m(x).last_hidden_state)
        check_both_ways(theirs, tmp_path, lambda m: m(x).pooled, lambda m: m(x).pooler_output)
    else:
        check_both_ways(theirs, tmp_path, lambda m: m(x), lambda m: m(x).image_embeds)


@pytest.mark.system("clip")
@pytest.mark.system("clip", "causal-text")
def test_the_text_encoder_is_causal() -> None:
    torch.manual_seed(0)
    model = ClipTextModel(TINY.text).eval()
    w = tokens()
    later = w.clone()
    later[:, 3] = 1
    a, b = model(w).hidden, model(later).hidden
    assert torch.equal(a[:, :3], b[:, :3])
    assert not torch.allclose(a[:, 3:], b[:, 3:])


def test_older_files_with_two_tables(tmp_path: Path) -> None:
    """text_config_dict and vision_config_dict hold what text_config and vision_config may lack."""
    theirs, x, w = peer(), pixels(), tokens()
    theirs.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    values = json.loads(path.read_text())
    values["text_config_dict"] = values.pop("text_config")
    values["vision_config_dict"] = {"image_size": values["vision_config"].pop("image_size")}
    path.write_text(json.dumps(values))
    with torch.no_grad():
        close(descend.load(tmp_path)(x, w), theirs(input_ids=w, pixel_values=x).logits_per_image)


@pytest.mark.system("clip")
@pytest.mark.system("clip", "pairs")
def test_it_learns_which_belong_together() -> None:
    """Eight random pairs by heart: every image finds its text, and every text its image."""
    torch.manual_seed(0)
    model, w = Clip(TINY), torch.randint(59, (8, 7))
    w[:, -1] = 60
    x = torch.randn(8, 3, 8, 8)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(30):
        optimizer.zero_grad()
        loss = n_pair(model(x, w)).mean()
        loss.backward()
        optimizer.step()
    assert loss < 0.1
    assert torch.equal(model(x, w).argmax(1), torch.arange(8))
    assert torch.equal(model(x, w).argmax(0), torch.arange(8))


def test_refusals(tmp_path: Path) -> None:
    x, _ = TINY_INPUT()
    model = Clip(TINY)
    with pytest.raises(ValueError, match="13 tokens, but this model has positions for 12"):
        model.encode_text(torch.zeros(1, 13, dtype=torch.long))
    with pytest.raises(ValueError, match="images of 8 x 4, but this model takes 8 x 8"):
        model.encode_image(x[..., :4])
    model.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    values = json.loads(path.read_text())
    values["text_config"]["hidden_act"] = "relu"
    path.write_text(json.dumps(values))
    with pytest.raises(Mistake, match="hidden_act 'relu' is not known, only quick_gelu, gelu"):
        descend.load(tmp_path)


@pytest.mark.system("clip")
def test_positions_and_class_token_start_at_the_scale_of_a_patch() -> None:
    """N(0, 1/d), as the original draws them: a token is a sum of d such numbers squared, about 1."""
    torch.manual_seed(0)
    model = ClipVisionModel(replace(TINY.image, width=1024, heads=4, depth=1))
    for x in (model.cls, model.position.weight):
        assert 0.9 < x.square().sum(-1).mean() < 1.1
