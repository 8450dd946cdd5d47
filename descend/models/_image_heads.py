"""The head of residual and plain networks, written once: the mean over the pixels, then a linear layer.

f = mean over the pixels of the last maps (b, d, h', w')            logits = W f + b
"""

from __future__ import annotations

from torch import Tensor, nn

from descend.weights.pretrained import Pretrained


class MeanClassifier(Pretrained):
    """images (b, channels, h, w) -> logits (b, classes), from what a network gives as its last `maps`"""

    head: nn.Linear

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))

    def features(self, x: Tensor) -> Tensor:
        """f (b, d): the mean of the last maps over their pixels."""
        return self.maps(x).mean(dim=(2, 3))

    def maps(self, x: Tensor) -> Tensor:
        """The last maps (b, d, h', w')."""
        raise NotImplementedError
