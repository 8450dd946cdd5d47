"""How many numbers an adapter trains.

    LoRA             Σ r (in + out) over the matrices        reduction of one: in · out / (r (in + out))
    bottleneck       2 d r for each place                    no biases are printed
    soft prompt      m d
    deep prefix      2 m d_kv for each layer                 a key and a value for every virtual token

Erratum: VOM's "127 times fewer" for d = k = 4096, r = 16 is exactly 128; it divided rounded numbers.

Systems: lora, bottleneck-adapters, prefix-tuning
"""

from __future__ import annotations

from collections.abc import Iterable


def lora_parameters(shapes: Iterable[tuple[int, int]], rank: int) -> int:
    """For matrices (out, in)."""
    return sum(rank * (out + inputs) for out, inputs in shapes)


def lora_reduction(out: int, inputs: int, rank: int) -> float:
    """How many times fewer than the matrix itself."""
    return out * inputs / lora_parameters([(out, inputs)], rank)


def lora_share(width: int, rank: int, shapes: Iterable[tuple[int, int]]) -> float:
    """Of a transformer block's 12 d² numbers, for the matrices of the block that are adapted."""
    return lora_parameters(shapes, rank) / (12 * width**2)


def bottleneck_parameters(width: int, size: int, places: int = 1) -> int:
    """W_down and W_up at each place."""
    return 2 * width * size * places


def soft_prompt_parameters(width: int, tokens: int) -> int:
    """One vector for each virtual token."""
    return tokens * width


def prefix_parameters(kv_width: int, tokens: int, depth: int) -> int:
    """A key and a value for each virtual token in each layer; kv_width = key heads · size of a head."""
    return 2 * tokens * kv_width * depth


def usable_context(context: int, virtual: int) -> int:
    """What virtual tokens leave of the context."""
    return context - virtual
