"""Teacher forcing without a source: the loss of one causal pass is that of a pass for every prefix."""

from __future__ import annotations

import pytest
import torch

from descend.losses.language import causal_lm_loss
from descend.models.gpt2 import GPT2
from descend.models.gpt2 import TINY as SMALL_GPT2
from descend.models.llama import TINY as SMALL_LLAMA
from descend.models.llama import Llama
from tests.close import close


@pytest.mark.system("teacher-forcing", "decoder-only")
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_one_causal_pass_is_a_pass_for_every_prefix(kind: str) -> None:
    torch.manual_seed(0)
    model = (GPT2(SMALL_GPT2) if kind == "gpt2" else Llama(SMALL_LLAMA)).double().eval()
    text = torch.randint(61, (3, 8), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        losses = [-model(text[:, :t])[:, -1].log_softmax(-1).gather(1, text[:, t : t + 1]) for t in range(1, 8)]
        close(causal_lm_loss(model(text[:, :-1]), text[:, 1:]), torch.cat(losses, 1).mean(), loosen=1e3)
