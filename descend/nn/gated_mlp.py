"""The gated feed-forward network.

    SwiGLU(x) = W_3 (Swish(W_2 x) ⊙ W_1 x)                   MF's letters: the gate is W_2, and there are no biases

Here gate = W_2, up = W_1, down = W_3. Other activations give its relatives: sigmoid GLU, GELU GEGLU, ReLU ReGLU.
Three matrices of 2/3 · 4 d cost what two of 4 d do: `hidden_size`, rounded up as LLaMA does.

Systems: swiglu-ffn
"""

from __future__ import annotations

from torch import Tensor, nn


def hidden_size(width: int, multiple: int = 256) -> int:
    """2/3 · 4 d, rounded up to a multiple: the d_ff of every LLaMA that MF lists."""
    return -(-(8 * width // 3) // multiple) * multiple


class GatedMLP(nn.Module):
    """down(f(gate(x)) ⊙ up(x))"""

    def __init__(self, width: int, hidden: int, activation: nn.Module):
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.gate(x)) * self.up(x))
