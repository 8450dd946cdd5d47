"""Small networks behind an encoder that a joint embedding is trained through, and that are thrown away afterwards.

    projector    z = W_2 relu(norm(W_1 h))                                    SimCLR, BYOL
    projector    z = norm(W_3 relu(norm(W_2 relu(norm(W_1 h)))))              SimSiam: the last norm without γ, β
    predictor    p = V_2 relu(norm(V_1 z))                                    BYOL, SimSiam: on one side only
    patches      g = W_g [W_p h_1; ..; W_p h_k]                               PIRL: of the k pieces of a jigsaw

norm is the batch norm over the examples. What the loss asks for (that two views agree) lets z forget what h keeps.
"""

from __future__ import annotations

from torch import Tensor, nn


class Projector(nn.Sequential):
    """W_2 relu(norm(W_1 h)): (b, inputs) -> (b, outputs)"""

    def __init__(self, inputs: int, hidden: int, outputs: int):
        super().__init__(
            nn.Linear(inputs, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, outputs)
        )


class SimSiamProjector(nn.Sequential):
    """Three layers with a batch norm after each: (b, inputs) -> (b, outputs)"""

    def __init__(self, inputs: int, hidden: int, outputs: int):
        super().__init__(
            nn.Linear(inputs, hidden, bias=False),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden, bias=False),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, outputs, bias=False),
            nn.BatchNorm1d(outputs, affine=False),
        )


class PatchProjector(nn.Module):
    """Vectors of k pieces (b, k, inputs) -> one vector (b, outputs)"""

    def __init__(self, inputs: int, pieces: int, outputs: int):
        super().__init__()
        self.each, self.join = nn.Linear(inputs, outputs), nn.Linear(pieces * outputs, outputs)

    def forward(self, h: Tensor) -> Tensor:
        return self.join(self.each(h).flatten(1))
