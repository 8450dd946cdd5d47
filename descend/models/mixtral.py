"""Mixtral: Mistral whose feed-forward part is a mixture of experts, two of eight for each token.

    y = x + attention(RMSNorm(x))
    x' = y + Σ_{e in T_2(n)} g_e(n) E_e(n)       n = RMSNorm(y),  g = softmax(W_g n) renormalised over the two kept
    E_e(n) = W_{3,e} (Swish(W_{2,e} n) ⊙ W_{1,e} n)

Trained with L_LM + α L_balance (`descend.losses.balance`, task `BalancedLanguage`). With one expert it is Mistral.
Errata: "8x7B" is not 8 · 7 billion parameters: only the feed-forward parts are eight, 46.70 billion in all and 12.88
billion active for a token (7.24 billion with one expert). MF gives it a sliding window; the release has none.

Systems: mixtral
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from torch import nn

from descend.models.mistral import AROUND, ATTENTION, Mistral, MistralConfig
from descend.models.mistral import LAYOUT as MISTRAL
from descend.nn.attention.rotary import Rope, rope_of_older_files
from descend.nn.experts import Experts, MixtureOfExperts, Router
from descend.ranges import Depth, Length, Share
from descend.weights.layout import Layout
from descend.weights.rules import rename, stack


@dataclass(frozen=True)
class MixtralConfig(MistralConfig):
    """The configuration of a Mixtral; the defaults are those of the 8x7B."""

    window: Length | None = None
    eps: Share = 1e-5
    rope: Rope = field(default_factory=lambda: Rope(theta=1e6))
    experts: Depth = 8
    active: Depth = 2


class Mixtral(Mistral):
    """tokens (b, t) -> logits (b, t, v)"""

    Config = MixtralConfig
    config: MixtralConfig

    def feed_forward(self) -> nn.Module:
        c = self.config
        experts = Experts(c.width, c.hidden, c.experts, nn.SiLU())
        return MixtureOfExperts(Router(c.width, c.experts, c.active), experts)


SIZES = {"mixtral-8x7b": MixtralConfig(context=32768)}
PARAMETERS = {"mixtral-8x7b": 46_702_792_704}
ACTIVE = {"mixtral-8x7b": 12_879_925_248}
TINY = MixtralConfig(
    vocab=61, context=24, width=32, depth=2, heads=4, kv_heads=2, hidden=24, experts=4, active=2
)  # fmt: skip

LAYOUT = Layout(
    architecture="MixtralForCausalLM",
    fields=MISTRAL.fields | {"experts": "num_local_experts", "active": "num_experts_per_tok"},
    parts={"rope": Rope},
    older=partial(rope_of_older_files, theta=1e6),
    fixed=MISTRAL.fixed | {"router_jitter_noise": 0.0},
    bare_prefix="model.",
)

FILE = "model.layers.{}.block_sparse_moe"
KEYS = [
    *AROUND,
    *ATTENTION,
    rename("blocks.{}.mlp.router.gate.weight", f"{FILE}.gate.weight"),
    *(
        stack(f"blocks.{{}}.mlp.experts.{ours}", f"{FILE}.experts.{{}}.{theirs}.weight")
        for ours, theirs in (("gate", "w1"), ("down", "w2"), ("up", "w3"))
    ),
]
