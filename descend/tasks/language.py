"""Language modelling: predict the next token.

min_θ  − (1/T) Σ_t log p_θ(x_{t+1} | x_1 .. x_t)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor, nn

from descend.losses.language import causal_lm_loss, token_losses


class Language(nn.Module):
    """x (b, t) are tokens, y (b, t) the tokens that follow."""

    players = ("model",)

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def moves(self, batch: dict[str, Tensor]) -> Iterator[tuple[str, Callable[[], Tensor]]]:
        yield "model", lambda: causal_lm_loss(self.model(batch["x"]), batch["y"])

    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"loss": token_losses(self.model(batch["x"]), batch["y"]).flatten()}
