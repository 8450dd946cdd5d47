"""DeepSeek-V3: DeepSeek-V2 with another router, balanced by a bias instead of a loss.

    s = σ(W_g n)                                 a score for each expert alone, no softmax
    T_k = the k largest of s + b                 among the groups whose two best sum to most; b steers the load
    g_e = c s_e / Σ_{T_k} s                      without b, renormalised, times a constant

The layers that predict further tokens (MTP) are left out: they take no part in the model's own output.

Systems: multi-head-latent-attention
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from descend.models.deepseek_v2 import KEYS as V2_KEYS
from descend.models.deepseek_v2 import LAYOUT as V2
from descend.models.deepseek_v2 import DeepseekV2
from descend.nn.attention.rotary import Rope
from descend.nn.experts import Router, Routing
from descend.ops.routing import best_groups
from descend.ranges import Depth, Few, Length, Positive, Share, Width
from descend.weights.layout import Layout
from descend.weights.rules import rename


@dataclass(frozen=True)
class DeepseekV3Config:
    """The configuration of a DeepSeek-V3; the defaults are the released ones, before the longer context."""

    vocab: Length = 129280
    context: Length = 4096
    width: Width = 7168
    depth: Depth = 61
    heads: Width = 128
    hidden: Width = 18432
    dense: Few = 3
    q_rank: Width | None = 1536
    kv_rank: Width = 512
    plain_size: Width = 128
    turned_size: Width = 64
    value_size: Width = 128
    experts: Depth = 256
    active: Depth = 8
    shared: Depth = 1
    expert_hidden: Width = 2048
    groups: Depth = 8
    active_groups: Depth = 4
    scaling: Positive = 2.5
    eps: Share = 1e-6
    rope: Rope = field(default_factory=Rope)


class BiasRouter(Router):
    """g = c s / Σ s over the k largest of s + b in the best groups; b is a buffer, moved by the load."""

    bias: Tensor

    def __init__(self, width: int, experts: int, k: int, scaling: float, groups: int, active_groups: int):
        super().__init__(width, experts, k)
        self.scaling, self.groups, self.active_groups = scaling, groups, active_groups
        self.register_buffer("bias", torch.zeros(experts))

    def forward(self, x: Tensor) -> Routing:
        logits: Tensor = self.gate(x)
        s = logits.to(torch.promote_types(logits.dtype, torch.float32)).sigmoid()
        steered = s + self.bias
        parts = steered.unflatten(-1, (self.groups, -1))
        open_to = best_groups(parts.topk(2, dim=-1).values.sum(-1), self.active_groups, parts.shape[-1])
        chosen = steered.masked_fill(~open_to, -torch.inf).topk(self.k, dim=-1).indices
        weight = s.gather(-1, chosen)
        return Routing(weight / weight.sum(-1, keepdim=True) * self.scaling, chosen, s / s.sum(-1, keepdim=True))


class DeepseekV3(DeepseekV2):
    """tokens (b, t) -> logits (b, t, v)"""

    Config = DeepseekV3Config

    def __init__(self, config: DeepseekV3Config):
        super().__init__(config)  # type: ignore[arg-type]

    def router(self) -> nn.Module:
        c = self.config
        return BiasRouter(c.width, c.experts, c.active, c.scaling, c.groups, c.active_groups)


SIZES = {
    "deepseek-v3": DeepseekV3Config(
        context=163840, rope=Rope(kind="yarn", factor=40.0, original=4096, mscale=1.0, mscale_all=1.0)
    )
}
PARAMETERS = {"deepseek-v3": 671_026_404_352}
TINY = DeepseekV3Config(
    vocab=61, context=24, width=32, depth=2, heads=4, hidden=48, dense=1, q_rank=12, kv_rank=16, plain_size=8,
    turned_size=4, value_size=8, experts=4, active=2, shared=1, expert_hidden=16, groups=2, active_groups=1,
)  # fmt: skip

LAYOUT = Layout(
    architecture="DeepseekV3ForCausalLM",
    fields={ours: theirs for ours, theirs in V2.fields.items() if ours != "method"},
    parts=V2.parts,
    older=V2.older,
    fixed={
        "hidden_act": "silu",
        "attention_bias": False,
        "norm_topk_prob": True,
        "rope_interleave": True,
        "moe_layer_freq": 1,
        "scoring_func": "sigmoid",
        "tie_word_embeddings": False,
    },
    bare_prefix="model.",
)

KEYS = [*V2_KEYS, rename("blocks.{}.mlp.router.bias", "model.layers.{}.mlp.gate.e_score_correction_bias")]
