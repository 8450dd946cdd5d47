"""Bottleneck adapters: their algebra, where they stand, and that nothing can be merged."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.errors import Mistake
from descend.kinds.adapters import Bottleneck
from descend.models import make_model
from descend.models.gpt2 import TINY
from descend.models.llama import TINY as LLAMA
from descend.nn.adapters.bottleneck import BottleneckAdapter
from descend.nn.gelu import GELUTanh
from descend.sampling.decoder import Recompute
from descend.sampling.generate import generate
from descend.theory.adapters import bottleneck_parameters
from tests.close import close


@pytest.mark.system("bottleneck-adapters")
@pytest.mark.system("bottleneck-adapters", "right-multiplication", "activations")
@pytest.mark.parametrize("f", [nn.ReLU(), nn.GELU(), GELUTanh()])
def test_the_equation_with_columns_and_with_rows(f: nn.Module) -> None:
    torch.manual_seed(0)
    adapter = BottleneckAdapter(6, 2, f).double()
    nn.init.normal_(adapter.up.weight)
    x = torch.randn(3, 6, dtype=torch.float64)
    by_hand = {"ReLU": torch.relu, "GELU": nn.functional.gelu}.get(
        type(f).__name__, lambda z: nn.functional.gelu(z, approximate="tanh")
    )
    columns = [row + adapter.up.weight @ by_hand(adapter.down.weight @ row) for row in x]
    close(adapter(x), torch.stack(columns))
    w_down, w_up = adapter.down.weight.T, adapter.up.weight.T  # VOM: (d, r) and (r, d), from the right
    close(adapter(x), x + by_hand(x @ w_down) @ w_up)


@pytest.mark.system("bottleneck-adapters", "identity", "count", "frozen-base")
@pytest.mark.parametrize("config", [TINY, LLAMA])
def test_it_begins_as_the_identity_and_only_it_is_trained(config: object) -> None:
    torch.manual_seed(0)
    base = make_model(config).eval()
    tokens = torch.randint(61, (2, 9))
    before, state = base(tokens), {k: v.clone() for k, v in base.state_dict().items()}
    model = Bottleneck(4).apply(base)
    close(model(tokens), before)
    learn = [p for p in model.parameters() if p.requires_grad]
    assert sum(p.numel() for p in learn) == bottleneck_parameters(32, 4, places=2 * 2) == model.adapter.count()
    optimizer = torch.optim.SGD(learn, 0.5)
    for _ in range(3):
        optimizer.zero_grad()
        model(tokens).square().mean().backward()
        optimizer.step()
    assert all(torch.equal(base.state_dict()[k], v) for k, v in state.items())
    assert all(p.grad is None for p in base.parameters())
    assert not torch.allclose(model(tokens), before)


@pytest.mark.system("bottleneck-adapters", "not-merged")
def test_a_nonlinear_function_cannot_be_merged() -> None:
    with pytest.raises(Mistake, match="a bottleneck adapter cannot be merged into the weights"):
        Bottleneck(4).apply(make_model(TINY)).merged()


@pytest.mark.system("bottleneck-adapters", "places", "decoding")
@pytest.mark.parametrize("config", [TINY, LLAMA])
@pytest.mark.parametrize("targets", [("attn", "mlp"), ("attn",), ("mlp",)])
def test_writing_passes_through_the_adapters(config: object, targets: tuple[str, ...]) -> None:
    torch.manual_seed(1)
    model = Bottleneck(4, "gelu", targets).apply(make_model(config)).eval()
    prompts = [[1, 2, 3, 4], [5, 6]]
    plain = generate(model.decoder(), prompts, 8)
    for p in model.adapters.parameters():
        nn.init.normal_(p, std=3.0)
    written = generate(model.decoder(), prompts, 8)
    assert written != plain
    assert written == generate(Recompute(model, 24), prompts, 8)


def test_a_place_that_does_not_exist_names_the_nearest() -> None:
    with pytest.raises(Mistake, match=r"GPT2 has no module 'atn'. Did you mean 'attn'"):
        Bottleneck(4, targets=("atn",)).apply(make_model(TINY))
