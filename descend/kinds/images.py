"""Image classification recipes: labelled images, and any model whose config has sizes that the data gives.

A config names what it needs: `image` (c, h, w) and `classes`; `channels`, `side` and `labels`; `inputs` and `outputs`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor

from descend.contracts import Batch, Exhibit, Stream
from descend.data.images.digits import Digits
from descend.data.images.labelled import Images, Preprocessing, Splits
from descend.data.images.mixing import CutMix, MixUp
from descend.data.images.source import ImageSource, describe_classes
from descend.data.images.stream import Walk, shuffle_images
from descend.data.images.unseen import read_unseen
from descend.data.streams.arrays import InOrder, Shuffled
from descend.data.streams.shards import process
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.compression import Compression
from descend.kinds.origin import find_listed
from descend.kinds.recipe import Judged, Recipe, describe_batch, fit_batch, micro_batch
from descend.kinds.start_from import Start
from descend.models import config_class, make_model, with_head
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.ranges import NonNegative, Range, Share
from descend.tasks.classify import Classify
from descend.weights.labels import Labels
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class Mix:
    """Mixed training images with soft labels; with both, each step picks one at random."""

    mixup: NonNegative = 0.0
    """a of MixUp's Beta(a, a), e.g. 0.2; 0: none."""
    cutmix: NonNegative = 0.0
    """a of CutMix's Beta(a, a), e.g. 1.0; 0: none."""

    def ways(self) -> tuple[MixUp | CutMix, ...]:
        if self.mixup < 0 or self.cutmix < 0:
            raise Mistake(f"--mix.mixup {self.mixup}, --mix.cutmix {self.cutmix}: at least 0")
        return (*((MixUp(self.mixup),) if self.mixup else ()), *((CutMix(self.cutmix),) if self.cutmix else ()))


@dataclass(frozen=True)
class Attack:
    """Adversarial training: perturbed images beside the clean ones."""

    eps: Share = 0.0
    """Largest change of a pixel in 0..1, e.g. 0.03; 0: none."""
    steps: Annotated[int, Range(int, least=1, most=1000)] = 1
    """Steps of the attack: 1 is FGSM, more are PGD."""

    def __post_init__(self) -> None:
        if not 0 <= self.eps <= 1 or self.steps < 1:
            raise Mistake(f"--attack.eps {self.eps}, --attack.steps {self.steps}: eps is 0..1, steps at least 1")


@dataclass(frozen=True)
class ClassifyImages(Recipe):
    """A classifier of images. With --batch 0 a step sees all the training images."""

    model: Any = field(default_factory=lambda: config_class("lenet")())
    data: Any = field(default_factory=Digits)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)
    mix: Mix = field(default_factory=Mix)
    attack: Attack = field(default_factory=Attack)
    start: Start = field(default_factory=Start)
    compress: Compression = field(default_factory=Compression)
    head: ClassVar[str] = ""
    """How the class of the model ends, where its file has several."""

    def build(self) -> Parts:
        splits = self.read()
        prepare = self.start.rescale(Preprocessing.fit(splits))
        batch = fit_batch(self.loop, len(splits.train.y))
        torch.manual_seed(self.loop.seed)
        model = build_model(self.start.choose_config(self.model), prepare.image, splits.labels, self.head)
        parts = Parts(
            task=self.task(model, prepare),
            model=model,
            stream=self.stream(splits.train, prepare, batch),
            valid=self.held_out(splits.valid, prepare),
            optims={"model": self.optim},
            unit="images",
            units_per_batch=batch,
            facts={
                "data": self.data.source,
                "training images": len(splits.train.y),
                "validation images": len(splits.valid.y),
                "test images": len(splits.test.y),
                "image": "×".join(map(str, prepare.image)),
                "classes": len(splits.labels),
                **describe_classes(splits),
                **describe_batch(self.loop, batch),
            },
            save_extra=prepare.save,
            exhibits=lambda: self.exhibits(model, splits, prepare),
        )
        return self.compress.apply(self.start.apply(parts), bool(self.start.path))

    def read(self) -> Splits:
        """The images, in the size of the network to start from."""
        found: Splits = self.start.fit_images(self.data).read()
        return found

    def baseline(self) -> ClassifyImages | None:
        """With --start.compare: the network that is started from, with random weights, on the same images."""
        if not self.start.compare:
            return None
        config, data = self.start.choose_config(self.model), self.start.fit_images(self.data)
        return dataclasses.replace(self, model=config, data=data, start=Start())

    def task(self, model: Pretrained, prepare: Preprocessing) -> Any:
        """Plain classification, or with mixed or attacked images."""
        ways = self.mix.ways()
        if ways and self.attack.eps:
            raise Mistake("--mix and --attack cannot be combined: an attack needs one class per image; choose one")
        if self.attack.eps:
            from descend.tasks.adversarial_examples import ClassifyAdversarially

            return ClassifyAdversarially(model, self.attack.eps, self.attack.steps, prepare.mean, prepare.std)
        if ways:
            from descend.tasks.mixed import ClassifyMixed

            return ClassifyMixed(model, len(prepare.labels), ways)
        return Classify(model)

    def stream(self, train: Images, prepare: Preprocessing, batch: int) -> Stream:
        """Shuffled training images, augmented if the recipe says so."""
        micro, seed, augment = micro_batch(self.loop, batch), self.loop.seed, self.data.changes()
        workers, last = self.data.processes(train), batch if self.data.drop_last else 0
        if isinstance(train.x, Tensor) and not augment.transforms and not workers:
            return Shuffled(prepare_arrays(train, prepare), micro, seed, *process(), drop_last=last)
        return shuffle_images(train, prepare, augment, micro, seed, process(), workers, last)

    def held_out(self, images: Images, prepare: Preprocessing) -> Iterable[Batch]:
        """Images that are not trained on, in order."""
        if isinstance(images.x, Tensor):
            return InOrder(prepare_arrays(images, prepare))
        return Walk(images, prepare, self.data.processes(images))

    def test(self) -> Iterable[Batch]:
        """The test images."""
        splits = self.read()
        return self.held_out(splits.test, self.start.rescale(Preprocessing.fit(splits)))

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """Images by the names of the classes that the model knows."""
        prepare = Preprocessing.read(folder)
        return Judged(self.task(model, prepare), self.held_out(read_unseen(Path(path), prepare), prepare))

    def files(self) -> dict[str, Path]:
        """With the images that a list names."""
        listed = find_listed(self.data.path) if isinstance(self.data, ImageSource) else {}
        return super().files() | listed

    def packages(self) -> tuple[str, ...]:
        """scikit-learn's own digits."""
        return ("scikit-learn",) if isinstance(self.data, Digits) and not self.data.path else ()

    def exhibits(self, model: Pretrained, splits: Splits, prepare: Preprocessing) -> list[Exhibit]:
        """Predictions, the inside of the model, its layers, and what augmentation does."""
        from descend.views.attempts import show_each
        from descend.views.images import look_inside, show_augmentation, show_layers, show_predictions

        found = show_each(
            {
                "Predictions": lambda: show_predictions(model, splits, self.held_out(splits.valid, prepare)),
                "Inside the model": lambda: look_inside(model, splits.valid, prepare),
                "Layers": lambda: show_layers(model, prepare.image),
            }
        )
        augment = self.data.changes()
        if not augment.transforms:
            return found
        return found + show_each({"Augmented training images": lambda: show_augmentation(splits, augment)})


def prepare_arrays(images: Images, prepare: Preprocessing) -> dict[str, Tensor]:
    return {"x": prepare.standardize(images.x), "y": images.y, "ids": images.ids}


def build_model(config: Any, image: tuple[int, int, int], names: tuple[str, ...], head: str = "") -> Pretrained:
    """The model of a config, with the sizes that follow from the data."""
    channels, height, width = image
    sizes = {"image": image, "classes": len(names), "channels": channels, "labels": Labels(names)}
    sizes |= {"inputs": channels * height * width, "outputs": len(names)}
    defaults = type(config)()
    named = {f.name for f in dataclasses.fields(config)}
    if not named & {"classes", "labels", "outputs"}:
        raise Mistake(f"--model: {type(config).__name__} needs a field for what the images set: classes: int = 10")
    if "side" in named:
        if height != width:
            raise Mistake(f"the images are {height}×{width}, but this model needs squares; give --data.size {height}")
        sizes["side"] = height
    given = {name: value for name, value in sizes.items() if name in named}
    for name, value in given.items():
        if getattr(config, name) not in (getattr(defaults, name), value):
            raise Mistake(f"--model.{name}: the data gives {value}; leave this flag out")
    try:
        config = dataclasses.replace(config, **given)
    except ValueError as error:
        raise Mistake(f"{error}; give a larger --data.size") from None
    return with_head(config, head) if head else make_model(config)
