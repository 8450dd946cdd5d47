"""An open-vocabulary detector: every cell says how far the sides are, and what it sees as a vector among words.

    t_q = Σ_w E_w                               a name is the sum of its words' vectors, articles left out
    e_i                                         the vector of cell i, by a branch of convolutions
    z_iq = e^s cos(e_i, t_q) + shift            the score of name q is σ(z_iq): no list of classes in the weights
    box                                         distances to the four sides, as YOLOv8's

The form of YOLO-World (which the book names only): YOLOv8's body, and the class branch replaced by a similarity with
texts (`nn/detection/text_similarity.py`). A text encoder of this size needs no order of words: "red circle" is red and
a circle. So a cell that has learned what is red and what is a circle knows a red circle that training never showed.

In training the model is asked for the names of the data but for the last `apart` of them, which it shall never see;
afterwards for all of them, or for any others made of known words (`encode_names`).

Systems: open-vocabulary-detection
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from descend.contracts import Boxes
from descend.errors import nearest
from descend.models._yolo import name_fields
from descend.models.yolo_v8 import STRIDES, FoundDistances, YoloV8, YoloV8Config
from descend.nn.detection.heads import Branch, DistanceHead
from descend.nn.detection.text_similarity import ContrastiveScore
from descend.ops.detection.distances import distances_to_boxes, expected_distance, make_points
from descend.ops.nms import keep_best
from descend.ranges import Depth, Share, Whole, Width
from descend.weights.labels import Labels
from descend.weights.pretrained import Pretrained

ARTICLES = frozenset(("a", "an", "the"))


def split_words(name: str) -> list[str]:
    """ "A red circle" -> red, circle"""
    return [word for word in re.findall(r"[^\W_]+", name.lower()) if word not in ARTICLES]


@dataclass(frozen=True)
class OpenVocabularyDetectorConfig:
    """The body is that of a small YOLOv8. A recipe takes channels and labels from its data."""

    channels: Width = 3
    widths: tuple[Width, Width, Width, Width, Width] = (16, 32, 64, 128, 256)
    """Maps after each halving."""
    depths: tuple[Depth, Depth, Depth, Depth] = (1, 2, 2, 1)
    """Residual pairs after each halving but the first."""
    neck: Depth = 1
    """Pairs in each block of the neck."""
    bins: Width = 16
    """How many distances, in strides, a side is distributed over: 0 .. bins − 1."""
    joint: Width = 64
    """Numbers in the vector of a word."""
    tau: Share = 0.65
    """Of two boxes of a name with a larger IoU, the one with the lower score is removed."""
    apart: Whole = 0
    """How many of the names, the last ones, are not asked for in training."""
    words: tuple[str, ...] = ()
    """All words it knows; none given: those of the labels."""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        for name in ("widths", "depths", "words"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The words that have a vector."""
        return self.words or tuple(sorted({word for name in self.labels.names for word in split_words(name)}))

    def body(self) -> YoloV8Config:
        """Backbone and neck; of the classes it knows nothing."""
        return YoloV8Config(self.channels, self.widths, self.depths, self.neck, self.bins)


class OpenVocabularyDetector(Pretrained):
    """images (b, channels, h, w), sides multiples of 32 -> `FoundDistances`, a logit for each name"""

    Config = OpenVocabularyDetectorConfig
    stride = STRIDES[-1]

    def __init__(self, config: OpenVocabularyDetectorConfig):
        super().__init__()
        c = self.config = config
        if c.apart >= len(c.labels):
            raise ValueError(f"apart {c.apart}: of {len(c.labels)} names at least one must be left to learn")
        self.body = YoloV8(c.body())
        self.body.head = DistanceHead(c.widths[2:], c.joint, c.bins, (max(c.widths[2], c.joint), c.body().branches[1]))
        for branch in self.body.head.classes:
            assert isinstance(branch, Branch)
            assert branch.last.bias is not None
            nn.init.zeros_(branch.last.bias)  # a vector, not a probability
        self.words = nn.Embedding(len(c.vocabulary), c.joint)
        self.score = ContrastiveScore()
        self.register_buffer("names", self.count_words(c.labels.names), persistent=False)
        self.names: Tensor

    def count_words(self, names: Sequence[str]) -> Tensor:
        """How often each known word is in each name (q, words); an unknown one is refused."""
        known, rows = self.config.vocabulary, []
        for name in names:
            found = split_words(name)
            if unknown := next((word for word in found if word not in known), ""):
                hint = f"{nearest(unknown, known)} Known: {', '.join(known)}"
                raise ValueError(f"{name!r}: the word {unknown!r} is not known.{hint}")
            if not found:
                raise ValueError(f"{name!r} has no word in it")
            rows.append([float(found.count(word)) for word in known])
        return torch.tensor(rows).reshape(len(rows), len(known))

    def encode_names(self, names: Sequence[str]) -> Tensor:
        """t (q, joint) of names made of known words"""
        return self.count_words(names).to(self.words.weight) @ self.words.weight

    def forward(self, x: Tensor) -> FoundDistances:
        names = self.names[: len(self.names) - self.config.apart] if self.training else self.names
        return self.find(x, names @ self.words.weight)

    def find(self, x: Tensor, texts: Tensor) -> FoundDistances:
        """With encoded texts (q, joint)."""
        maps = self.body.neck(self.body.pyramid(x))
        points, strides = make_points([(m.shape[2], m.shape[3]) for m in maps], STRIDES, x)
        vectors, sides = self.body.head(maps)
        boxes = distances_to_boxes(expected_distance(sides, self.body.bins), points, strides)
        return FoundDistances(self.score(vectors, texts), sides, boxes, points, strides)

    def decode(self, found: FoundDistances, least: float = 0.001, most: int = 100) -> Boxes:
        """The best name of each point, without duplicates."""
        scores, classes = found.logits.sigmoid().max(dim=-1)
        return keep_best(found.boxes, scores, classes, self.config.tau, least, most)


TINY = OpenVocabularyDetectorConfig(
    widths=(4, 6, 8, 8, 8), depths=(1, 1, 1, 1), neck=1, bins=4, joint=8,
    labels=Labels(("red circle", "blue circle", "red square")),
)  # fmt: skip


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 64, 96, generator=torch.Generator().manual_seed(0))


LAYOUT = name_fields(OpenVocabularyDetectorConfig)
