"""Whether a recipe fits into memory, told before anything large is made.

    weights       4 bytes a parameter, four times: the weights, their gradient, two moments of the optimizer
    activations   4 bytes an output of every linear and convolutional layer, for each unit of a micro-batch

Both are less than training takes. The parameters are counted on a model without memory (torch's meta device), which is
made before the data are read; sizes that the data will give are taken as small as they can be.
"""

from __future__ import annotations

import dataclasses

import torch
from torch import nn

from descend import models
from descend.engine.background import available_memory
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.encoder import EncoderSize
from descend.kinds.own_model import naming_field
from descend.kinds.recipe import Recipe
from descend.models.bert import BertConfig

LEAST = {"vocab": 300, "inputs": 1, "outputs": 1, "classes": 1}  # what data may give
COPIES = 4  # of the parameters: weights, gradient, two moments
BYTES = 4


def build_within_memory(recipe: Recipe) -> Parts:
    """What `recipe.build` makes, refused where it could not be trained in the memory there is."""
    parameters = count_parameters(recipe.model)
    require_memory(f"a model of {parameters:,} parameters", BYTES * COPIES * parameters, "smaller --model sizes")
    with naming_field(recipe.model):
        parts = recipe.build()
    outputs = sum(count_outputs(part) for name, part in parts.task.named_modules() if "expert" not in name)
    units = parts.units_per_batch // recipe.loop.accumulate
    wanted = f"a micro-batch of {units:,} {parts.unit}"
    require_memory(wanted, BYTES * units * outputs, "a smaller --batch or a larger --accumulate")
    return parts


def count_parameters(model: object) -> int:
    """Of the model that a recipe's sizes describe; 0 where they do not tell, or where the sizes do not go together."""
    if isinstance(model, EncoderSize):
        model = BertConfig(1, model.context, model.width, model.depth, model.heads, model.hidden)
    if not dataclasses.is_dataclass(model) or isinstance(model, type):
        return 0
    if not type(model).__module__.startswith(f"{models.__name__}."):
        return 0
    given = {f.name: getattr(model, f.name) for f in dataclasses.fields(model) if f.name in LEAST}
    smaller = {name: min(LEAST[name], value) for name, value in given.items() if value is not None}
    try:
        with torch.device("meta"):
            sketch = models.make_model(dataclasses.replace(model, **smaller))
    except (ValueError, NotImplementedError):  # told, or not, when it is built
        return 0
    return sum(int(p.numel()) for p in sketch.parameters())


def count_outputs(layer: nn.Module) -> int:
    """Numbers that a layer gives for a unit, at least."""
    if isinstance(layer, nn.Linear):
        return layer.out_features
    return layer.out_channels if isinstance(layer, nn.modules.conv._ConvNd) else 0


def require_memory(what: str, wanted: int, fix: str) -> None:
    """Refuse what takes more than there is; nothing is refused where the system does not tell."""
    free = available_memory()
    if free and wanted > free:
        raise Mistake(f"{what} takes at least {wanted / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free; give {fix}")
