"""DeepSeek-V2: latent attention with a small cache, and many small experts beside a few that all tokens share.

    y = x + MLA(RMSNorm(x))
    x' = y + FFN(n)                                            n = RMSNorm(y), in the first layers
    x' = y + shared(n) + s Σ_{e in T_k(n)} p_e(n) E_e(n)       p = softmax(W_g n), not renormalised, s a constant

`greedy` takes the k largest gates; `group_limited_greedy` first the groups (devices) whose best expert is largest.
Positions beyond 4096 by YaRN, which also sharpens the scores (`Rope.score_scale`).

Systems: multi-head-latent-attention
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from descend.models.mistral import AROUND, GATED, Block
from descend.nn.attention.latent import LatentAttention, LatentBlock, LatentSizes
from descend.nn.attention.rotary import Rope, rope_of_older_files
from descend.nn.decoding.cached import CachedDecoder, Ends
from descend.nn.experts import Experts, Router, Routing, SharedExperts
from descend.nn.gated_mlp import GatedMLP
from descend.ops.routing import best_groups, gates, top_k
from descend.ranges import Depth, Few, Length, Positive, Share, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename, stack


@dataclass(frozen=True)
class DeepseekV2Config:
    """The configuration of a DeepSeek-V2. `dense` layers come first; `q_rank` None: queries without a latent."""

    vocab: Length = 102400
    context: Length = 2048
    width: Width = 4096
    depth: Depth = 32
    heads: Width = 32
    hidden: Width = 11008
    dense: Few = 0
    q_rank: Width | None = 1536
    kv_rank: Width = 512
    plain_size: Width = 128
    turned_size: Width = 64
    value_size: Width = 128
    experts: Depth = 64
    active: Depth = 6
    shared: Depth = 2
    expert_hidden: Width = 1407
    groups: Depth | None = None
    active_groups: Depth | None = None
    method: str | None = "greedy"
    scaling: Positive = 1.0
    eps: Share = 1e-6
    rope: Rope = field(default_factory=Rope)


class ScaledRouter(Router):
    """s p_e of the k largest gates."""

    def __init__(self, width: int, experts: int, k: int, scaling: float):
        super().__init__(width, experts, k)
        self.scaling = scaling

    def forward(self, x: Tensor) -> Routing:
        p = gates(self.gate(x))
        weight, chosen = top_k(self.mask_groups(p), self.k)
        return Routing(weight * self.scaling, chosen, p)

    def mask_groups(self, p: Tensor) -> Tensor:
        """p, and 0 for experts that may not be chosen."""
        return p


class GroupRouter(ScaledRouter):
    """The same among the experts of the groups whose best expert is largest."""

    def __init__(self, width: int, experts: int, k: int, scaling: float, groups: int, active_groups: int):
        super().__init__(width, experts, k, scaling)
        self.groups, self.active_groups = groups, active_groups

    def mask_groups(self, p: Tensor) -> Tensor:
        parts = p.unflatten(-1, (self.groups, -1))
        return p.masked_fill(~best_groups(parts.amax(-1), self.active_groups, parts.shape[-1]), 0.0)


class DeepseekV2(Pretrained):
    """tokens (b, t) -> logits (b, t, v)"""

    Config: ClassVar[type] = DeepseekV2Config

    def __init__(self, config: DeepseekV2Config):
        super().__init__()
        c = self.config = config
        sizes = LatentSizes(c.q_rank, c.kv_rank, c.plain_size, c.turned_size, c.value_size)
        self.embed = nn.Embedding(c.vocab, c.width)
        self.blocks = nn.ModuleList(
            Block(c.width, LatentAttention(c.width, c.heads, sizes, c.rope.score_scale), self.feed_forward(i), c.eps)
            for i in range(c.depth)
        )
        self.norm = nn.RMSNorm(c.width, c.eps)
        self.head = nn.Linear(c.width, c.vocab, bias=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def feed_forward(self, layer: int) -> nn.Module:
        """Dense in the first layers, then the mixture."""
        c = self.config
        if layer < c.dense:
            return GatedMLP(c.width, c.hidden, nn.SiLU())
        experts = Experts(c.width, c.expert_hidden, c.experts, nn.SiLU())
        return SharedExperts(self.router(), experts, GatedMLP(c.width, c.shared * c.expert_hidden, nn.SiLU()))

    def router(self) -> nn.Module:
        c = self.config
        if c.method == "greedy":
            return ScaledRouter(c.width, c.experts, c.active, c.scaling)
        if c.method != "group_limited_greedy" or c.groups is None or c.active_groups is None:
            raise ValueError(f"topk_method {c.method!r}: only greedy and group_limited_greedy, with groups")
        return GroupRouter(c.width, c.experts, c.active, c.scaling, c.groups, c.active_groups)

    def forward(self, tokens: Tensor) -> Tensor:
        t, c = tokens.shape[1], self.config
        if t > c.rope.reach(c.context):
            raise ValueError(f"{t} tokens, but this model has positions for {c.context} (its context)")
        angles = c.rope.angles(torch.arange(t, device=tokens.device), c.turned_size, c.context)
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, angles)
        return self.head(self.norm(x))

    def decoder(self) -> CachedDecoder:
        """This model with the latents in its cache."""
        blocks = [
            LatentBlock(b.norm_1, cast("LatentAttention", b.attn), b.norm_2, b.mlp)
            for b in cast("Iterable[Block]", self.blocks)
        ]
        ends = Ends(lambda tokens, _: self.embed(tokens), self.norm, self.head.weight)
        return CachedDecoder(ends, blocks, self.config.context, self.config.rope)


YARN = Rope(kind="yarn", factor=40.0, original=4096, mscale=0.707, mscale_all=0.707)
SIZES = {
    "deepseek-v2": DeepseekV2Config(
        context=163840, width=5120, depth=60, heads=128, hidden=12288, dense=1, experts=160, expert_hidden=1536,
        groups=8, active_groups=3, method="group_limited_greedy", scaling=16.0, rope=YARN,
    ),
    "deepseek-v2-lite": DeepseekV2Config(
        context=163840, width=2048, depth=27, heads=16, hidden=10944, dense=1, q_rank=None, expert_hidden=1408,
        groups=1, active_groups=1, rope=YARN,
    ),
}  # fmt: skip
PARAMETERS = {"deepseek-v2": 235_741_434_880, "deepseek-v2-lite": 15_706_484_224}
TINY = DeepseekV2Config(
    vocab=61, context=24, width=32, depth=2, heads=4, hidden=48, dense=1, q_rank=12, kv_rank=16, plain_size=8,
    turned_size=4, value_size=8, experts=4, active=2, shared=1, expert_hidden=16,
)  # fmt: skip

LAYOUT = Layout(
    architecture="DeepseekV2ForCausalLM",
    fields={
        "vocab": "vocab_size",
        "context": "max_position_embeddings",
        "width": "hidden_size",
        "depth": "num_hidden_layers",
        "heads": ("num_attention_heads", "num_key_value_heads"),
        "hidden": "intermediate_size",
        "dense": "first_k_dense_replace",
        "q_rank": "q_lora_rank",
        "kv_rank": "kv_lora_rank",
        "plain_size": "qk_nope_head_dim",
        "turned_size": "qk_rope_head_dim",
        "value_size": "v_head_dim",
        "experts": "n_routed_experts",
        "active": "num_experts_per_tok",
        "shared": "n_shared_experts",
        "expert_hidden": "moe_intermediate_size",
        "groups": "n_group",
        "active_groups": "topk_group",
        "method": "topk_method",
        "scaling": "routed_scaling_factor",
        "eps": "rms_norm_eps",
        "rope": "rope_parameters",
    },
    parts={"rope": Rope},
    older=rope_of_older_files,
    fixed={
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "norm_topk_prob": False,
        "moe_layer_freq": 1,
        "scoring_func": "softmax",
        "tie_word_embeddings": False,
    },
    bare_prefix="model.",
)

ATTN, FILE = "blocks.{}.attn", "model.layers.{}.self_attn"
KEYS = [
    *AROUND,
    rename(f"{ATTN}.q.weight", f"{FILE}.q_proj.weight"),
    rename(f"{ATTN}.q.down.weight", f"{FILE}.q_a_proj.weight"),
    rename(f"{ATTN}.q.norm.weight", f"{FILE}.q_a_layernorm.weight"),
    rename(f"{ATTN}.q.up.weight", f"{FILE}.q_b_proj.weight"),
    rename(f"{ATTN}.kv_down.weight", f"{FILE}.kv_a_proj_with_mqa.weight"),
    rename(f"{ATTN}.kv_norm.weight", f"{FILE}.kv_a_layernorm.weight"),
    rename(f"{ATTN}.kv_up.weight", f"{FILE}.kv_b_proj.weight"),
    rename(f"{ATTN}.out.weight", f"{FILE}.o_proj.weight"),
    *GATED,
    rename("blocks.{}.mlp.router.gate.weight", "model.layers.{}.mlp.gate.weight"),
    *(
        rule(f"blocks.{{}}.mlp.{ours}", f"model.layers.{{}}.mlp.{theirs}.weight")
        for p in ("gate", "up", "down")
        for rule, ours, theirs in (
            (stack, f"experts.{p}", f"experts.{{}}.{p}_proj"),
            (rename, f"shared.{p}.weight", f"shared_experts.{p}_proj"),
        )
    ),
]
