"""The backward pass of a whole encoder-decoder transformer by hand, composed of the layers' rules (VOM 12.4).

    encoder block    X̃ = LN₁(X + MHA(X, X)),   X′ = LN₂(X̃ + FFN(X̃))
    decoder block    Ỹ = LN₁(Y + MHA(Y, Y, causal)),   Ŷ = LN₂(Ỹ + MHA(Ỹ, X_enc)),   Y′ = LN₃(Ŷ + FFN(Ŷ))
    loss             L = Y_dec W_out + b_out,   ℓ = −mean_i log softmax(L_i)_{y_i}
    backward         ℓ → logits → decoder blocks, last first → E_target
                     dX_enc = Σ over all decoder blocks of what flows into their keys and values → encoder blocks → E

Every layer returns its output and the function that takes the output's adjoint to the input's, and adds the gradients
of its parameters to a dictionary. Post-norm, no biases in attention, ε inside the root. No autograd anywhere.

Systems: transformer-manual-backward
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.ops.attention.dot_product import causal_mask
from descend.ops.backward.attention import multi_head, multi_head_backward
from descend.ops.backward.layers import (
    cross_entropy_backward,
    embedding_backward,
    layer_norm_backward,
    linear_backward,
    relu_backward,
    residual_backward,
)

Parameters = dict[str, Tensor]
Back = Callable[[Tensor, Parameters], Tensor]
BackPair = Callable[[Tensor, Parameters], tuple[Tensor, Tensor]]
EPS = 1e-6


@dataclass(frozen=True)
class Sizes:
    """Of the model."""

    vocab: int = 11
    width: int = 8
    hidden: int = 12
    heads: int = 2
    depth: int = 2


def initial(sizes: Sizes, seed: int) -> Parameters:
    """Random parameters: matrices by their fan-in, gains 1, shifts and biases near 0."""
    random = torch.Generator().manual_seed(seed)
    d, f, v = sizes.width, sizes.hidden, sizes.vocab

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64) / shape[0] ** 0.5

    p = {"source": normal(v, d) * v**0.5, "target": normal(v, d) * v**0.5, "out.w": normal(d, v), "out.b": normal(v)}
    for side, norms, mixers in (("encoder", 2, ("self",)), ("decoder", 3, ("self", "cross"))):
        for i in range(sizes.depth):
            for mixer in mixers:
                p |= {f"{side}.{i}.{mixer}.{name}": normal(d, d) for name in ("q", "k", "v", "o")}
            for n in range(1, norms + 1):
                p |= {f"{side}.{i}.norm{n}.gain": 1 + normal(d), f"{side}.{i}.norm{n}.shift": normal(d)}
            p |= {f"{side}.{i}.up.w": normal(d, f), f"{side}.{i}.up.b": normal(f)}
            p |= {f"{side}.{i}.down.w": normal(f, d), f"{side}.{i}.down.b": normal(d)}
    return p


def positions(t: int, d: int) -> Tensor:
    """sin and cos of i / 10000^{2j/d}; they are constants, so the adjoint of the sum passes to the embedding."""
    angle = torch.arange(t, dtype=torch.float64)[:, None] / 10_000 ** (torch.arange(0, d, 2, dtype=torch.float64) / d)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)[:, :d]


def collect(into: Parameters, name: str, g: Tensor) -> None:
    """Add a gradient to what a parameter has collected so far."""
    into[name] = into[name] + g if name in into else g


def embed(p: Parameters, name: str, tokens: Tensor) -> tuple[Tensor, Callable[[Tensor, Parameters], None]]:
    table = p[name]

    def back(g: Tensor, into: Parameters) -> None:
        collect(into, name, embedding_backward(tokens, g, table.shape[0]))

    return table[tokens] + positions(tokens.shape[-1], table.shape[-1]), back


def linear(p: Parameters, name: str, x: Tensor) -> tuple[Tensor, Back]:
    w = p[f"{name}.w"]

    def back(g: Tensor, into: Parameters) -> Tensor:
        dx, dw, db = linear_backward(x, w, g)
        collect(into, f"{name}.w", dw)
        collect(into, f"{name}.b", db)
        return dx

    return x @ w + p[f"{name}.b"], back


def norm(p: Parameters, name: str, x: Tensor) -> tuple[Tensor, Back]:
    gain = p[f"{name}.gain"]

    def back(g: Tensor, into: Parameters) -> Tensor:
        dx, dgain, dshift = layer_norm_backward(x, gain, g, EPS)
        collect(into, f"{name}.gain", dgain)
        collect(into, f"{name}.shift", dshift)
        return dx

    return F.layer_norm(x, x.shape[-1:], gain, p[f"{name}.shift"], EPS), back


def feed_forward(p: Parameters, name: str, x: Tensor) -> tuple[Tensor, Back]:
    z, back_up = linear(p, f"{name}.up", x)
    out, back_down = linear(p, f"{name}.down", z.relu())
    return out, lambda g, into: back_up(relu_backward(z, back_down(g, into)), into)


def attend(
    p: Parameters, name: str, x_q: Tensor, x_k: Tensor, heads: int, mask: Tensor | None
) -> tuple[Tensor, BackPair]:
    """Multi-head attention; the way back gives the adjoints of the queries' and of the keys' side."""
    w = (p[f"{name}.q"], p[f"{name}.k"], p[f"{name}.v"], p[f"{name}.o"])
    out, kept = multi_head(x_q, x_k, w, heads, mask)

    def back(g: Tensor, into: Parameters) -> tuple[Tensor, Tensor]:
        from_q, from_k, found = multi_head_backward(kept, w, g)
        for letter, dw in zip("qkvo", found, strict=True):
            collect(into, f"{name}.{letter}", dw)
        return from_q, from_k

    return out, back


def encoder_block(p: Parameters, name: str, x: Tensor, heads: int, mask: Tensor | None) -> tuple[Tensor, Back]:
    z, back_z = attend(p, f"{name}.self", x, x, heads, mask)
    a, back_a = norm(p, f"{name}.norm1", x + z)
    f, back_f = feed_forward(p, name, a)
    out, back_out = norm(p, f"{name}.norm2", a + f)

    def back(g: Tensor, into: Parameters) -> Tensor:
        g_a, g_f = residual_backward(back_out(g, into))
        g_x, g_z = residual_backward(back_a(g_a + back_f(g_f, into), into))
        from_q, from_k = back_z(g_z, into)
        return g_x + from_q + from_k

    return out, back


def decoder_block(
    p: Parameters, name: str, y: Tensor, memory: Tensor, heads: int, mask: Tensor | None
) -> tuple[Tensor, BackPair]:
    """The way back gives the adjoint of y, and this block's share in that of X_enc."""
    z, back_z = attend(p, f"{name}.self", y, y, heads, causal_mask(y.shape[-2]))
    a, back_a = norm(p, f"{name}.norm1", y + z)
    c, back_c = attend(p, f"{name}.cross", a, memory, heads, mask)
    b, back_b = norm(p, f"{name}.norm2", a + c)
    f, back_f = feed_forward(p, name, b)
    out, back_out = norm(p, f"{name}.norm3", b + f)

    def back(g: Tensor, into: Parameters) -> tuple[Tensor, Tensor]:
        g_b, g_f = residual_backward(back_out(g, into))
        g_a, g_c = residual_backward(back_b(g_b + back_f(g_f, into), into))
        from_a, from_memory = back_c(g_c, into)
        g_y, g_z = residual_backward(back_a(g_a + from_a, into))
        from_q, from_k = back_z(g_z, into)
        return g_y + from_q + from_k, from_memory

    return out, back


def loss_and_gradients(
    p: Parameters, sizes: Sizes, source: Tensor, target: Tensor, y: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Parameters]:
    """Mean cross-entropy and the gradient of every parameter.

    source (b, s) and target (b, t) are tokens, y (b, t) the tokens to predict; the mask, (b, 1, 1, s), says which
    source positions are real.
    """
    x, back_source = embed(p, "source", source)
    encoder = []
    for i in range(sizes.depth):
        x, back_block = encoder_block(p, f"encoder.{i}", x, sizes.heads, mask)
        encoder.append(back_block)
    h, back_target = embed(p, "target", target)
    decoder = []
    for i in range(sizes.depth):
        h, back_pair = decoder_block(p, f"decoder.{i}", h, x, sizes.heads, mask)
        decoder.append(back_pair)
    logits, back_out = linear(p, "out", h)
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())

    into: Parameters = {}
    g, g_memory = back_out(cross_entropy_backward(logits, y), into), torch.zeros_like(x)
    for back_pair in reversed(decoder):
        g, share = back_pair(g, into)
        g_memory = g_memory + share  # every decoder block looks at the same X_enc
    back_target(g, into)
    for back_block in reversed(encoder):
        g_memory = back_block(g_memory, into)
    back_source(g_memory, into)
    return loss, into
