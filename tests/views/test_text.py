"""What a language model shows of itself: the use of its experts."""

from __future__ import annotations

import pytest
import torch

from descend.models.bert import TINY as BOTH_WAYS
from descend.models.bert import Bert
from descend.models.gpt2 import GPT2
from descend.models.gpt2 import TINY as DENSE
from descend.models.mixtral import TINY, Mixtral
from descend.nn.experts import Router
from descend.views.text import show_attention, show_experts


@pytest.mark.system("mixtral", "use")
def test_the_use_of_the_experts_is_shown() -> None:
    """In every layer the shares add up to k; a router that always chooses the same two has two full columns."""
    torch.manual_seed(0)
    model, tokens = Mixtral(TINY).eval(), torch.randint(61, (2, 9), generator=torch.Generator().manual_seed(0))
    (exhibit,) = show_experts(model, tokens)
    values = torch.tensor(exhibit.content["values"])
    assert values.shape == (TINY.depth, TINY.experts)
    assert torch.allclose(values.sum(1), torch.tensor(float(TINY.active)))
    assert (exhibit.kind, exhibit.content["row_label"], len(exhibit.content["rows"])) == (
        "heatmap",
        "layer",
        TINY.depth,
    )
    routers = [m for m in model.modules() if isinstance(m, Router)]
    assert not any(r._forward_hooks for r in routers)  # nothing is left behind
    with torch.no_grad():
        for router in routers:
            router.gate.weight.zero_()  # equal gates: the first two are taken for every token
    (exhibit,) = show_experts(model, tokens)
    assert sorted(exhibit.content["values"][0], reverse=True)[:2] == [1.0, 1.0]
    assert show_experts(GPT2(DENSE), tokens) == []


@pytest.mark.system("pretraining-family-comparison", "patterns")
def test_the_patterns_of_bert_and_gpt_are_drawn() -> None:
    """Every head of the one looks at all T² pairs, of the other at T (T + 1) / 2."""
    torch.manual_seed(0)
    tokens, names = torch.randint(61, (1, 7), generator=torch.Generator().manual_seed(0)), list("abcdefg")
    for model, pairs in ((Bert(BOTH_WAYS).eval(), 49), (GPT2(DENSE).eval(), 28)):
        (exhibit,) = show_attention(model, names, tokens)
        assert exhibit.kind == "heads"
        for heads in exhibit.content["layers"].values():
            assert heads.shape == (4, 7, 7)
            assert ((heads > 0).sum((1, 2)) == pairs).all()
