"""layers: a network layer by layer, with shapes, parameters, FLOPs and receptive fields."""

from __future__ import annotations

import json as json_format
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from descend import models
from descend.data.images.labelled import PREPROCESSOR, Preprocessing
from descend.errors import Mistake, nearest
from descend.ops.graph.structure import Graph, build_graph
from descend.own_code import use_code
from descend.theory.network import Network
from descend.theory.network import layers as walk
from descend.weights.checkpoints import resolve_checkpoint

LONGEST = 64  # tokens that a text model is shown
RING = 8  # nodes of the graph that a graph network is shown
SIDE = 224  # pixels along the edge of an image, where nothing says how large they are


def layers(
    model: nn.Module | str, *inputs: Tensor, size: str = "", side: int = 0, checkpoint: str | int = "best"
) -> Network:
    """A network layer by layer: shapes, parameters, FLOPs, receptive fields. `print(descend.layers(model, x))`

    By name it is built at one of its published sizes, on the meta device: nothing is stored or computed.

    Args:
        model: any module, the name of a model, or the folder of a run or of a model.
        inputs: what the module is called with; made up where the model says what it takes.
        size: which published size, for a model by name; empty: the first one.
        side: of the image, for models that take any; 0: what the folder's images have, else 224.
        checkpoint: of a run: best, last or a step.
    """
    if isinstance(model, nn.Module):
        if not inputs:
            raise Mistake("layers: a module needs an input, such as torch.zeros(1, 3, 224, 224)")
        return walk(model, *inputs)
    if Path(model).is_dir():
        network = models.load(model, checkpoint)
        made = inputs or find_input(model, checkpoint, side) or make_graph(network.config)
        given = made or make_input(network.config, side or SIDE, model)
        return walk_model(model, network, given)
    name = model.replace("-", "_")
    if name not in models.names():
        raise Mistake(f"there is no model or folder {model!r}.{nearest(name, models.names())}")
    file: Any = import_module(f"descend.models.{name}")
    sizes = getattr(file, "SIZES", {})
    if size and size not in sizes:
        known = f"its sizes: {', '.join(sizes)}" if sizes else "it has no published sizes"
        raise Mistake(f"{model} has no size {size!r}.{nearest(size, sizes)} {known[:1].upper()}{known[1:]}")
    config = sizes[size] if size else next(iter(sizes.values()), file.TINY)
    if not inputs and (graph := make_graph(config)):
        return walk_model(model, models.model_class(name)(config), graph)
    with torch.device("meta"):
        network = models.model_class(name)(config)
        given = inputs or make_input(config, side or SIDE, model)
    return walk_model(model, network, tuple(x.to("meta") for x in given))


def find_input(folder: str, checkpoint: str | int, side: int) -> tuple[Tensor, ...]:
    """An image of the size that the folder's preprocessing makes, or of another side; nothing where there is none."""
    path = resolve_checkpoint(folder, checkpoint)
    if not (path / PREPROCESSOR).is_file():
        return ()
    channels, height, width = Preprocessing.read(path).image
    return (torch.zeros(1, channels, side or height, side or width),)


def make_graph(config: Any) -> tuple[Graph, ...]:
    """A ring of `RING` nodes with the attributes of a config, where its models take graphs; else nothing."""
    sample = getattr(sys.modules[type(config).__module__], "TINY_INPUT", tuple)
    if not isinstance(sample(), Graph):
        return ()
    here = torch.arange(RING)
    ring = torch.stack([here, (here + 1) % RING], dim=1)
    widths = [getattr(config, name, 0) for name in ("inputs", "edges", "context")]
    nodes, edges, context = (torch.ones(n, width) for n, width in zip((RING, 2 * RING, 1), widths, strict=True))
    return (build_graph(nodes, torch.cat([ring, ring.flip(1)]), edges, context),)


def walk_model(name: str, network: nn.Module, inputs: tuple[Any, ...]) -> Network:
    """The table, or one line when this input is not the model's."""
    try:
        return walk(network, *inputs)
    except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError) as error:
        shapes = " and ".join("×".join(map(str, x.shape)) if isinstance(x, Tensor) else "a graph" for x in inputs)
        said = str(error).strip().split("\n")[0].split(". ")[0]
        raise Mistake(f"{name} does not run on {shapes} ({said}); from Python: descend.layers(model, input)") from None


def make_input(config: Any, side: int, name: str) -> tuple[Tensor, ...]:
    """The input that a config's fields describe: an image, tokens, or a row of numbers."""
    fields = vars(config)
    if isinstance(image := fields.get("image"), tuple):  # in a CLIP it is another model's config
        return (torch.zeros(1, *image),)
    if "channels" in fields:
        side = fields.get("side", side)
        return (torch.zeros(1, fields["channels"], side, side),)
    if "vocab" in fields:
        context = fields.get("context")  # in sequence to sequence a word: when the source is read
        return (torch.zeros(1, min(LONGEST, context) if isinstance(context, int) else LONGEST, dtype=torch.long),)
    if "inputs" in fields:
        return (torch.zeros(1, fields["inputs"]),)
    raise Mistake(f"{name} needs an input that cannot be generated; from Python: descend.layers(model, input)")


def command(
    model: str, /, *, size: str = "", side: int = 0, checkpoint: str = "best", code: str = "", json: bool = False
) -> None:
    """A network layer by layer: shape, parameters, FLOPs (a multiply-add counts as two), receptive field.

    Args:
        model: a model by name, at a published size; or the folder of a run or of a model.
        size: which published size; the first one if left out.
        side: side of the image, for models that take any; 0: what a run was trained on, else 224.
        checkpoint: of a run: best, last or a step.
        code: the file of a recipe or model of your own, where it is not found by its name.
        json: print JSON.

    Examples:
        descend layers lenet
        descend layers resnet --size resnet-50
        descend layers runs/demo --json
    """
    use_code(code)
    found = layers(model, size=size, side=side, checkpoint=checkpoint)
    if json:
        rows = [layer._asdict() for layer in found.layers]
        print(json_format.dumps({"parameters": found.parameters, "flops": found.flops, "layers": rows}, indent=1))
    else:
        print(found)
