"""What /v1/predict takes and answers, by what a run does: a form and an answer for each family.

    images     PNG, JPEG, .. in base64 (a data: URL is fine)        masks, samples     PNG in base64
    graphs     {"nodes": [[..], ..], "edges": [[0, 1], ..]}, as in a .json file of graphs

`descend predict` says the same of the same input.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from descend.server.forms import Form

MOST = 64  # inputs of a request
LARGEST_GRAPH = 100_000  # nodes that a number alone may ask for

Image = Annotated[str, Field(min_length=1, json_schema_extra={"contentEncoding": "base64"})]
Images = Annotated[list[Image], Field(min_length=1, max_length=MOST)]
Texts = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=MOST)]
Top = Annotated[int, Field(ge=1, le=1000)]
Cell = str | int | float | bool | None
Row = Annotated[list[float], Field(min_length=1)]


class AskImages(Form):
    """Classes of images, or of the one object in each."""

    images: Images
    top: Top = 5


class AskCaptions(Form):
    """Which of some texts fits each image best."""

    images: Images
    labels: Texts
    top: Top = 5


class AskObjects(Form):
    """The objects of images."""

    images: Images
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.25


class AskNamedObjects(AskObjects):
    """The objects that are named."""

    labels: Texts


class AskMasks(Form):
    """The class of every pixel."""

    images: Images


class AskTranslation(Form):
    """Images in another domain, or back."""

    images: Images
    back: bool = False


class AskTexts(Form):
    """Classes or tags of texts, words for the [MASK] of each, neighbours of words, or answers to sources."""

    texts: Texts
    top: Top = 5


class AskRecords(Form):
    """A class or a number for each record of a table."""

    records: Annotated[list[dict[str, Cell]], Field(min_length=1, max_length=4096)]


class Graph(BaseModel):
    """A graph as JSON."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    nodes: Annotated[int, Field(ge=1, le=LARGEST_GRAPH)] | list[list[float]] | list[dict[str, Any]]
    """Attributes of each node, their number alone where there are none, or objects with "id" and "x"."""
    edges: list[list[int]] | list[dict[str, Any]]
    edge_attributes: list[list[float]] | None = None
    context: list[float] | None = None
    directed: bool | None = None
    names: list[str] | None = None
    name: str | None = None


class AskGraphs(Form):
    """A class for each node, an answer for each graph, or the most probable new links."""

    graphs: Annotated[list[Graph], Field(min_length=1, max_length=MOST)]
    top: Top = 5


class AskSamples(Form):
    """New examples; example i of a seed is always the same."""

    count: Annotated[int, Field(ge=1, le=MOST)] = 1
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    steps: Annotated[int, Field(ge=0, le=10_000)] = 0
    guidance: Annotated[float, Field(ge=0, le=100)] | None = None
    method: str = ""
    label: str = ""
    prompt: str = ""


class AskActions(Form):
    """What the policy does, without exploring."""

    observations: Annotated[list[Row], Field(min_length=1, max_length=4096)]


FORMS: tuple[type[Form], ...] = (
    AskImages, AskCaptions, AskObjects, AskNamedObjects, AskMasks, AskTranslation, AskTexts, AskRecords, AskGraphs,
    AskSamples, AskActions,
)  # fmt: skip


# Answers, one for each input


class Ranked(BaseModel):
    label: str
    probability: float | None = None
    cosine: float | None = None
    """Of neighbours of a word, instead of a probability."""


class Classes(BaseModel):
    """The most likely classes."""

    input: str
    answers: list[Ranked]
    box: list[float] | None = None
    """x0, y0, x1, y1 as shares of width and height, where the model finds one object."""


class Found(BaseModel):
    label: str
    score: float
    box: list[float]
    """x0, y0, x1, y1 in pixels."""


class Objects(BaseModel):
    input: str
    width: int
    height: int
    objects: list[Found]


class Mask(BaseModel):
    """The class of every pixel, at the size that the model sees."""

    input: str
    mask: str
    """PNG in base64; a pixel's value is the number of its class in `labels`."""
    labels: list[str]
    shares: dict[str, float]


class Tag(BaseModel):
    word: str
    tag: str
    probability: float


class Tags(BaseModel):
    input: str
    tags: list[Tag]


class TextAnswer(BaseModel):
    input: str
    text: str


class RecordAnswer(BaseModel):
    record: int
    prediction: str | float
    probability: float | None = None


class NodeClass(BaseModel):
    graph: int
    node: str
    prediction: str
    probability: float


class GraphValues(BaseModel):
    graph: int
    values: dict[str, str | float]


class NewLink(BaseModel):
    graph: int
    source: str
    target: str
    probability: float


class ImageMade(BaseModel):
    index: int
    image: str
    """PNG in base64."""


class PointMade(BaseModel):
    index: int
    values: list[float]


class SampleMade(BaseModel):
    """An image or a point: a public folder does not say which its model makes."""

    index: int
    image: str | None = None
    """PNG in base64."""
    values: list[float] | None = None


class Action(BaseModel):
    action: int | list[float]


ANSWERS: tuple[type[BaseModel], ...] = (
    Classes, Objects, Mask, Tags, TextAnswer, RecordAnswer, NodeClass, GraphValues, NewLink, ImageMade, PointMade,
    SampleMade, Action,
)  # fmt: skip


class Prediction(BaseModel):
    """The answers in the order of the inputs."""

    model: str
    object: Literal["prediction"] = "prediction"
    answers: list[
        Classes | Objects | Mask | Tags | TextAnswer | RecordAnswer | NodeClass | GraphValues | NewLink | ImageMade
        | PointMade | SampleMade | Action
    ]  # fmt: skip
