"""Language modelling with truncated backpropagation through time: the state is carried on, the gradient is not.

    window k of a track:   h_0 = the last state of window k - 1, as a constant      (0 where the track begins)
                           loss and gradient over the τ steps of the window         τ = the model's context

At most τ states are kept for the gradient, however long the text is; with one window for the whole text it is full
BPTT. MF names the method and gives no procedure; this is the usual one. The states are part of the task, so a run
resumes exactly. Validation starts every window at 0, as a reader would who opens the text there.

Systems: truncated-bptt
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from descend.contracts import Batch, CarriesState, Move
from descend.losses.language import causal_lm_loss
from descend.tasks.language import Language


class TruncatedLanguage(Language):
    """x and y (b, t), the track of each row, and whether it is fresh (`descend.data.text.tracks`)."""

    model: CarriesState  # the state is (n, depth, b, d)
    state: Tensor

    def __init__(self, model: CarriesState, tracks: int, bytes_per_token: float = 0.0):
        super().__init__(model, bytes_per_token)
        self.register_buffer("state", model.start(tracks).detach())

    def moves(self, batch: Batch) -> Iterator[Move]:
        rows = batch["rows"]
        before = self.state[:, :, rows].masked_fill(batch["fresh"][:, None], 0.0)
        after = before

        def loss() -> Tensor:
            nonlocal after
            logits, state = self.model.carry(batch["x"], before)
            after = state.detach()
            return causal_lm_loss(logits, batch["y"])

        yield Move("model", loss)
        self.state[:, :, rows] = after.to(self.state.dtype)
