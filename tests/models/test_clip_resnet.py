"""CLIP with a residual network: its image vectors are the network's outputs, at length 1; the rest is CLIP's."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn.functional import normalize

import descend
from descend.models.clip_resnet import TINY, TINY_INPUT, ClipResNet
from descend.models.clip_text_model import ClipTextModel
from tests.close import close


@pytest.mark.system("clip")
def test_the_joint_space(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, (x, tokens) = ClipResNet(TINY).eval(), TINY_INPUT()
    text = ClipTextModel(TINY.text).eval()
    text.load_state_dict(model.text.state_dict())
    images = normalize(model.image(x), dim=1)
    texts = normalize(text(tokens).pooled @ model.project_text.weight.T, dim=1)
    close(model(x, tokens), model.scale.exp() * images @ texts.T)
    model.save_pretrained(tmp_path)
    close(descend.load(tmp_path)(x, tokens), model(x, tokens))
