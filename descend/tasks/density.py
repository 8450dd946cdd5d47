"""Learning a density by maximum likelihood: minimise −log p(x), the mean over the examples.

    −log p(x) = −log p_z(f⁻¹(x)) − log|det J(x)|        the two parts are told to the metrics

Where the true log-density of an example is known (`log_p` in a batch), `excess` is −log p(x) + log p_true(x). Its mean
is the divergence KL(p_true ‖ p): never below 0 but by chance, so that a wrong log-determinant shows.

Systems: normalizing-flow, continuous-normalizing-flow, hutchinson-trace
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move, Task


class MaximumLikelihood(Task):
    """A batch is x (b, D). `log_scale` is Σ log std of standardized data, so that scores are in the data's units.

    The model gives `terms(x)`, the two parts of log p(x), and `check(x)`, which refuses points it cannot invert.
    """

    def __init__(self, model: nn.Module, log_scale: float = 0.0):
        super().__init__()
        self.model, self.log_scale = model, log_scale

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: self.likelihood(batch))

    def likelihood(self, batch: Batch) -> Loss:
        """−log p(x), with its parts."""
        prior, log_det = self.terms(batch)
        return Loss({"nll": -(prior + log_det).mean()}, {"prior": prior.mean(), "log_det": log_det.mean()})

    def terms(self, batch: Batch) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = self.model.terms(batch["x"])  # type: ignore[operator]
        if not (found[0] + found[1]).detach().isfinite().all():
            self.model.check(batch["x"])  # type: ignore[operator]
        return found

    def score(self, batch: Batch) -> dict[str, Tensor]:
        return score_density(self.model.log_prob, batch, self.log_scale)  # type: ignore[arg-type]


class EstimatedLikelihood(MaximumLikelihood):
    """The same for a continuous flow, with noise ε (b, D) in the batch: training estimates the trace by it. Scores have
    the exact one."""

    def terms(self, batch: Batch) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = self.model.terms(batch["x"], batch["eps"])  # type: ignore[operator]
        return found


def score_density(log_prob: Callable[[Tensor], Tensor], batch: Batch, log_scale: float) -> dict[str, Tensor]:
    """−log p(x) of each example, and how much it exceeds that of the true density where that is known."""
    nll = log_scale - log_prob(batch["x"])
    return {"nll": nll, "excess": nll + batch["log_p"]} if "log_p" in batch else {"nll": nll}
