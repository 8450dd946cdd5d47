"""Four questions to any sequence model: does it take every length, see the order, reach far, and use the context?

    length     f(x_1 .. x_T) exists for every T asked for
    order      f of a sequence against f of the same words in another order: "dog bites man", "man bites dog"
    distance   ‖∂f_T/∂x_t‖ against T - t, how much of the answer at the end comes from so far back
    context    what the model says at a word, in two contexts: "river bank", "bank account"

A model is a function of tokens (b, t), or of vectors (b, t, d) for the distance; outputs may have any shape. A bag of
words fails the order, a fixed window the length and the distance, an embedding alone the context.

Systems: sequence-property-probes
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

Model = Callable[[Tensor], Tensor]


def try_lengths(model: Model, vocab: int, lengths: Iterable[int]) -> dict[int, bool]:
    """Whether a finite answer comes for random words of each length; a refusal is a no."""
    found = {}
    for t in lengths:
        words = torch.randint(vocab, (1, t), generator=torch.Generator().manual_seed(t))
        try:
            found[t] = bool(model(words).isfinite().all())
        except (ValueError, RuntimeError, IndexError):
            found[t] = False
    return found


def order_effect(model: Model, words: Tensor, order: Tensor) -> float:
    """The largest change of the last output when the words (b, t) come in another order (t)."""
    return (model(words) - model(words[:, order])).abs().max().item()


def distance_effect(model: Model, x: Tensor) -> Tensor:
    """‖∂ Σ f_T / ∂x_t‖ for t = 1 .. T, mean over the batch: x (b, t, d) -> (t); the last output is what counts."""
    x = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(model(x).sum(), x)
    return g.norm(dim=-1).mean(0)


def context_effect(model: Model, words: Tensor, others: Tensor, at: int) -> float:
    """The largest change of the output at one place when the words around it (b, t) change and its own does not."""
    if not torch.equal(words[:, at], others[:, at]):
        raise ValueError(f"the words at place {at} differ: only the context may change")
    return (model(words)[:, at] - model(others)[:, at]).abs().max().item()
