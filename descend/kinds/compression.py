"""Training towards a smaller network: flags that every recipe of image classifiers has.

    --start.path RUN --start.rate 1 --compress.sparsity 0.9     prune a trained network, fine-tune what is left
    --compress.scope layer                                      nine tenths of every layer, not of all together
    --compress.bits 4 --compress.group 32                       learn with rounded weights (quantization-aware)

The checkpoint of a pruned network has zeros; that of rounded weights has the weights behind them, which
`descend compress RUN --int4` then rounds to the numbers that were trained with. What does this is imported when it is
asked for.

Systems: magnitude-pruning, quantization-aware-training
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.ranges import Fraction, Range, Whole


@dataclass(frozen=True)
class Compression:
    """How much smaller the network is to be."""

    sparsity: Fraction = 0.0
    """Share of the weights that are set to 0 and kept there; needs --start.path."""
    scope: Literal["all", "layer"] = "all"
    """Of all weights together, or of each layer."""
    bits: Annotated[int, Range(int, least=0, most=8)] = 0
    """Bits of a weight to train with, 2 to 8; 0: as it is."""
    group: Whole = 0
    """With --compress.bits: so many neighbours of a row share a step; 0: the whole row."""

    def apply(self, parts: Parts, trained: bool) -> Parts:
        """The parts with a pruned model, or one of rounded weights; `trained` says whether it was trained before."""
        if self.sparsity:
            if not trained:
                raise Mistake("--compress.sparsity prunes what was trained; give --start.path RUN too")
            parts = self.prune(parts)
        return self.round(parts) if self.bits else parts

    def prune(self, parts: Parts) -> Parts:
        """Set the least weights to 0, and keep them there."""
        from descend.nn.pruning import choose_masks, prune
        from descend.optim.kept_zeros import KeepZeros

        share = prune(parts.model, choose_masks(parts.model, self.sparsity, self.scope))
        optims: dict[str, Any] = {player: KeepZeros(rule) for player, rule in parts.optims.items()}
        return replace(parts, optims=optims, facts={**parts.facts, "zero weights": round(share, 4)})

    def round(self, parts: Parts) -> Parts:
        """Compute with rounded weights."""
        from descend.nn.fake_quantized import fake_quantize_model
        from descend.ops.quantization import BITS

        if self.bits not in BITS:
            raise Mistake(f"--compress.bits {self.bits}: a weight has {BITS[0]} to {BITS[-1]} bits")
        fake_quantize_model(parts.model, self.bits, self.group)
        return replace(parts, facts={**parts.facts, "bits of a weight": self.bits})
