"""The Switch Transformer: a T5 in which some feed-forward parts are N experts, of which each token passes through one.

    p = softmax(W_r x),  i = argmax p          FFN(x) = p_i(x) W_o,i ReLU(W_i,i x)

Of `depth` layers with `sparse` mixtures every (depth / sparse)-th has one, beginning with the second. An expert takes
at most `capacity` tokens of a sequence, in the order of the text; the others get 0 from it and keep what the residual
connection carries. In training the router's input is jittered, x ⊙ u, u uniform in 1 ± ε. The rest is T5.

Systems: switch-transformer
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.models.t5 import FIELDS, T5, T5Config, stack_keys, update_values
from descend.nn.experts import Experts, Routing, dispatch
from descend.nn.switch import SwitchRouter
from descend.ops.routing import within_capacity
from descend.ranges import Depth, Few, Length, NonNegative, Width
from descend.weights.layout import Layout
from descend.weights.rules import rename, stack, untied


@dataclass(frozen=True)
class SwitchTransformersConfig(T5Config):
    """The configuration of a Switch Transformer; the defaults are those of the published format."""

    width: Width = 768
    depth: Depth = 12
    decoder_depth: Depth = 12
    heads: Width = 12
    sparse: Few = 3
    decoder_sparse: Few = 3
    experts: Depth = 8
    capacity: Length = 64
    jitter: NonNegative = 0.01


class ReluExperts(nn.Module):
    """N networks W_o ReLU(W_i x) without biases, stacked: up (N, h, d), down (N, d, h)."""

    def __init__(self, width: int, hidden: int, experts: int, dropout: float):
        super().__init__()
        self.up = nn.Parameter(torch.empty(experts, hidden, width))
        self.down = nn.Parameter(torch.empty(experts, width, hidden))
        self.dropout = dropout

    def __len__(self) -> int:
        return len(self.up)

    def forward(self, x: Tensor, counts: list[int]) -> Tensor:
        """x (n, d), whose first counts[0] rows belong to expert 0, the next counts[1] to expert 1, and so on."""
        rows = zip(self.up.unbind(0), self.down.unbind(0), x.split(counts), strict=True)
        drop = self.dropout if self.training else 0.0
        return torch.cat([F.linear(F.dropout(F.linear(part, up).relu(), drop), down) for up, down, part in rows])


class SparseMLP(nn.Module):
    """x (b, t, d) -> (b, t, d), 0 for the tokens of a sequence that found their expert full."""

    def __init__(self, router: SwitchRouter, experts: ReluExperts, capacity: int):
        super().__init__()
        self.router, self.experts, self.capacity = router, experts, capacity

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(0, -2)
        routing: Routing = self.router(flat)
        chosen = routing.chosen.view(x.shape[:-1])
        rows = within_capacity(chosen, len(self.experts), self.capacity).flatten().nonzero().squeeze(1)
        y = dispatch(flat[rows], routing.weight[rows], routing.chosen[rows], cast("Experts", self.experts))
        return torch.zeros_like(flat).index_copy(0, rows, y).view_as(x)


class SwitchTransformers(T5):
    """source (b, s) and target (b, t) -> logits (b, t, v)"""

    Config: ClassVar[type] = SwitchTransformersConfig

    def encoder_mlps(self) -> list[nn.Module]:
        return self.mlps(self.config.depth, self.config.sparse)

    def decoder_mlps(self) -> list[nn.Module]:
        return self.mlps(self.config.decoder_depth, self.config.decoder_sparse)

    def mlps(self, depth: int, sparse: int) -> list[nn.Module]:
        every = depth // sparse if sparse else 0
        return [self.mixture() if every and (every == 1 or i % every == 1) else self.mlp() for i in range(depth)]

    def mixture(self) -> SparseMLP:
        c = self.config
        router = SwitchRouter(c.width, c.experts, c.jitter)
        return SparseMLP(router, ReluExperts(c.width, c.hidden, c.experts, c.dropout), c.capacity)


SIZES = {"switch-base-8": SwitchTransformersConfig(hidden=3072, sparse=6, decoder_sparse=6)}
PARAMETERS = {"switch-base-8": 619_339_008}
TINY = SwitchTransformersConfig(
    61, 32, 2, 2, 4, 8, 48, tied=False, buckets=8, farthest=20, sparse=1, decoder_sparse=1, experts=3, capacity=8
)  # fmt: skip


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Two sources and the beginnings of their targets."""
    random = torch.Generator().manual_seed(0)
    return torch.randint(61, (2, 12), generator=random), torch.randint(61, (2, 10), generator=random)


LAYOUT = Layout(
    architecture="SwitchTransformersForConditionalGeneration",
    fields=FIELDS
    | {
        "feed_forward": "dense_act_fn",
        "tied": "tie_word_embeddings",
        "sparse": "num_sparse_encoder_layers",
        "decoder_sparse": "num_sparse_decoder_layers",
        "experts": "num_experts",
        "capacity": "expert_capacity",
        "jitter": "router_jitter_noise",
    },
    older=update_values,
    fixed={"is_encoder_decoder": True, "dense_act_fn": "relu", "router_bias": False, "router_dtype": "float32"},
)

_MLPS = {"encoder.layers.{}.mlp": "encoder.block.{}.layer.1.mlp", "layers.{}.mlp": "decoder.block.{}.layer.2.mlp"}
KEYS = stack_keys(untied("head.weight", "lm_head.weight", "shared.weight")) + [
    rule
    for ours, theirs in _MLPS.items()
    for rule in (
        rename(f"{ours}.inner.weight", f"{theirs}.wi.weight"),
        rename(f"{ours}.down.weight", f"{theirs}.wo.weight"),
        rename(f"{ours}.router.gate.weight", f"{theirs}.router.classifier.weight"),
        stack(f"{ours}.experts.up", f"{theirs}.experts.expert_{{}}.wi.weight"),
        stack(f"{ours}.experts.down", f"{theirs}.experts.expert_{{}}.wo.weight"),
    )
]
