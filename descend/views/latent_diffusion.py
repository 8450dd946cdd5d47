"""What a model of captioned images shows: images of some prompts."""

from __future__ import annotations

from typing import Any

import torch

from descend.contracts import Exhibit, Wish
from descend.data.images.labelled import Preprocessing
from descend.sampling.chance import PerExample
from descend.views.pixels import channels_last

SEED, EACH = 0, 4


def show_prompts(pipeline: Any, prompts: tuple[str, ...], prepare: Preprocessing) -> Exhibit:
    """A few images of each prompt."""
    asked = tuple(prompt for prompt in prompts for _ in range(EACH))
    device: torch.device = next(pipeline.parameters()).device
    x = pipeline.generate(PerExample(SEED, len(asked), device=device), Wish(prompts=asked))
    content = {"images": channels_last(prepare.restore(x.cpu())), "captions": list(asked)}
    return Exhibit("images", "Prompts", content, f"Drawn with seed {SEED}: descend sample RUN --prompt TEXT")
