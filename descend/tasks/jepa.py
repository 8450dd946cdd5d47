"""I-JEPA: what an encoder says of hidden blocks of an image, predicted from what it says of the rest.

    L = (1/n) Σ over the target patches of ‖ predictor(f(context))_i − norm(f'(x))_i ‖² / d
    θ' ← m θ' + (1 − m) θ after every step, m from m₀ to 1                                     (`nn/momentum`)

f sees only the context patches; f', its slow copy, sees the whole image and takes no gradient. norm is a layer norm
without γ, β. The loss is on target patches only, and it is of representations: what cannot be known of a patch (noise)
need not be predicted. The slow copy is the model that is kept, as in the paper.

A batch has x (b, c, h, w), context (b, K) and targets (b, M, n), places of patches (`ops/images/target_blocks`).

Systems: jepa
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from descend.contracts import Batch, Loss, Move
from descend.nn.momentum import follow, rising_momentum, slow_copy
from descend.nn.patch_predictor import PatchPredictor
from descend.tasks.representation import Representation


class ContextPredictor(nn.Module):
    """The part that learns: the encoder of the context, and the predictor."""

    def __init__(self, encoder: nn.Module, predictor: PatchPredictor):
        super().__init__()
        self.encoder, self.predictor = encoder, predictor

    def forward(self, x: Tensor, context: Tensor, targets: Tensor) -> Tensor:
        """Predicted vectors of the target patches (b, M, n, d)."""
        found: Tensor = self.predictor(self.encoder.encode_some(x, context), context, targets)  # type: ignore[operator]
        return found


class JEPA(Representation):
    """`steps` is the length of the run, over which the momentum rises to 1."""

    players = ("online",)
    steps_taken: Tensor

    def __init__(self, encoder: nn.Module, predictor: PatchPredictor, momentum: float = 0.996, steps: int = 1):
        super().__init__()
        self.online = ContextPredictor(encoder, predictor)
        self.target = slow_copy(encoder)
        self.momentum, self.steps = momentum, steps
        self.register_buffer("steps_taken", torch.zeros((), dtype=torch.long))
        self.due = False

    def moves(self, batch: Batch) -> Iterator[Move]:
        self.due = True
        yield Move("online", lambda: self.loss(batch))
        if self.due:  # the parts of one step all come here: follow once
            momentum = rising_momentum(self.momentum, int(self.steps_taken), self.steps)
            follow(self.target, self.online.encoder, momentum)
            self.steps_taken += 1
            self.due = False

    def aim(self, batch: Batch) -> Tensor:
        """What the slow copy says of the target patches (b, M, n, d)."""
        with torch.no_grad():
            tokens: Tensor = self.target(batch["x"])
        rows = torch.arange(len(tokens), device=tokens.device)[:, None, None]
        return layer_norm(tokens, tokens.shape[-1:])[rows, batch["targets"]]

    def errors(self, batch: Batch) -> Tensor:
        """The mean squared error of each image's target patches (b)."""
        predicted = self.online(batch["x"], batch["context"], batch["targets"])
        return (predicted - self.aim(batch)).square().mean(dim=(1, 2, 3))

    def loss(self, batch: Batch) -> Loss:
        return Loss({"loss": self.errors(batch).mean()})

    def embed(self, x: Tensor) -> Tensor:
        found: Tensor = self.target.layer_features(x)  # type: ignore[operator]
        return found

    def measure(self, batch: Batch) -> dict[str, Tensor]:
        return {"loss": self.errors(batch)}
