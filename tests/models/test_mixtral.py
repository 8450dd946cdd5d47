"""Mixtral against transformers' own, both ways: routing, the balancing loss, counts, decoding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import descend
from descend.losses.balance import balance_loss
from descend.models.mistral import Mistral, MistralConfig
from descend.models.mixtral import ACTIVE, PARAMETERS, SIZES, TINY, Mixtral, MixtralConfig
from descend.nn.experts import Router, Routing, total_and_active
from tests.close import close
from tests.models.peers import check_both_ways, check_generation, random_peer

transformers = pytest.importorskip("transformers")


def peer(window: int | None = None) -> Any:
    config = transformers.MixtralConfig(
        vocab_size=61, hidden_size=32, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, num_local_experts=5, num_experts_per_tok=2,
        sliding_window=window, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return random_peer(transformers.MixtralForCausalLM, config)


def tokens() -> Tensor:
    return torch.randint(61, (3, 17), generator=torch.Generator().manual_seed(1))


@pytest.mark.system("load-balancing-loss", "letters")
@pytest.mark.system("swiglu-ffn", "models")
@pytest.mark.system("mixtral")
@pytest.mark.system("mixtral", "model")
@pytest.mark.system("mixture-of-experts")
@pytest.mark.system("load-balancing-loss")
def test_both_ways(tmp_path: Path) -> None:
    """Outputs, gradients of the experts and of the router, and the auxiliary loss over all layers."""
    theirs, x = peer(), tokens()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x), lambda m: m(x).logits)
    found: list[Routing] = []
    for module in ours.modules():
        if isinstance(module, Router):
            module.register_forward_hook(lambda _, __, routing: found.append(routing))
    logits = ours(x)
    aux = balance_loss(torch.cat([r.p for r in found]), torch.cat([r.chosen for r in found]))
    expected = theirs(x, output_router_logits=True)
    close(aux, expected.aux_loss)
    (logits.square().mean() + aux).backward()
    (expected.logits.square().mean() + expected.aux_loss).backward()
    mlp, their_mlp = ours.blocks[1].mlp, theirs.model.layers[1].mlp
    close(mlp.router.gate.weight.grad, their_mlp.gate.weight.grad)
    close(torch.cat([mlp.experts.gate.grad, mlp.experts.up.grad], 1), their_mlp.experts.gate_up_proj.grad)
    close(mlp.experts.down.grad, their_mlp.experts.down_proj.grad)


@pytest.mark.system("autoregressive-generation", "models")
@pytest.mark.system("mixtral")
@pytest.mark.system("mixtral", "model")
@pytest.mark.parametrize("window", [None, 6])
@pytest.mark.parametrize("prompts", [[[5, 3, 9, 1]], [[7, 2], [4, 4, 8, 1, 30], [11, 60, 3]]], ids=["one", "padded"])
def test_generation(prompts: list[list[int]], window: int | None, tmp_path: Path) -> None:
    theirs = peer(window)
    theirs.save_pretrained(tmp_path)
    check_generation(theirs, descend.load(tmp_path), prompts, 20)


@pytest.mark.system("mixtral")
@pytest.mark.system("mixtral", "counts")
def test_total_and_active_parameters() -> None:
    """46.70 and 12.88 billion, not 8 · 7; the active ones are those of the model with two experts but the router."""
    with torch.device("meta"):
        model = Mixtral(SIZES["mixtral-8x7b"])
    assert total_and_active(model, 2) == (PARAMETERS["mixtral-8x7b"], ACTIVE["mixtral-8x7b"])


@pytest.mark.system("mixtral")
@pytest.mark.system("mixtral", "one-expert")
def test_one_expert_is_mistral() -> None:
    torch.manual_seed(0)
    one = Mixtral(MixtralConfig(**{**vars(TINY), "experts": 1, "active": 1}))
    names = {f.name for f in MistralConfig.__dataclass_fields__.values()}
    plain = Mistral(MistralConfig(**{k: v for k, v in vars(one.config).items() if k in names}))
    state = {k.replace(".experts", ""): v for k, v in one.state_dict().items() if "router" not in k}
    plain.load_state_dict({
        (f"{k}.weight" if ".mlp." in k else k): (v[0] if ".mlp." in k else v) for k, v in state.items()
    })  # fmt: skip
    close(one(tokens()), plain(tokens()))


@pytest.mark.system("load-balancing-loss", "auxiliary")
@pytest.mark.system("mixtral")
@pytest.mark.system("mixtral", "trained")
def test_it_learns_with_the_balancing_loss() -> None:
    from descend.tasks.language import BalancedLanguage

    torch.manual_seed(0)
    task, x = BalancedLanguage(Mixtral(TINY), 0.02), tokens()
    optimizer = torch.optim.AdamW(task.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        [move] = list(task.moves({"x": x[:, :-1], "y": x[:, 1:]}))
        optimizer.zero_grad()
        losses.append(move.value().total())
        losses[-1].backward()
        optimizer.step()
    assert losses[0] > 4.0
    assert losses[-1] < 0.5
    assert task.score({"x": x[:, :-1], "y": x[:, 1:]})["loss"].mean() < losses[-1]  # the score is of the language alone
