"""What of a trained model becomes a graph, with an example of its inputs.

    classifiers, detectors, encoders, tables     forward: raw outputs; decoding boxes and choosing classes is left out
    language models                              logits of a whole text, without a cache
    generators                                   what a sampler calls again and again: one denoising step, the decoder
    policies                                     what acting calls: the network, or the whole plan

How long a text and how large an image is comes from the config and from the folder's preprocessing. What a generator
calls is found by watching it make two examples.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from descend.contracts import Detects, Generates, HasDecoder, PlansActions, Wish
from descend.errors import Mistake
from descend.exports.traced import BATCH, LENGTH, Given, name_axes
from descend.files import read_json
from descend.sampling.chance import PerExample

ROWS, SIDE, WORDS = 2, 224, 12
"""Examples, the side of an image where nothing says it, and tokens."""
STEPS = 2  # of a sampler that is watched
TIMES = {"t", "level"}
LEAST = 0.3  # of a generator's numbers that a part has which stands for it
IMAGES = "preprocessor_config.json"
TEXTS = ("tokens", "source", "target", "centres")


@dataclass(frozen=True)
class Entry:
    """A module to record, its inputs, and what is told to whoever uses the file."""

    module: nn.Module
    given: tuple[Given, ...]
    computes: str
    left_out: str = ""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """What is called with beside tensors."""


class Call(NamedTuple):
    """A call that was watched."""

    name: str
    module: nn.Module
    tensors: dict[str, Tensor]
    constants: dict[str, Any]


class Plan(nn.Module):
    """A policy as a function of what is seen."""

    def __init__(self, model: Any, names: Sequence[str]):
        super().__init__()
        self.model, self.names = model, tuple(names)

    def forward(self, **seen: Tensor) -> Tensor:
        rows = next(iter(seen.values())).shape[0]
        return self.model.plan(seen, Silence(rows))


class Silence:
    """A chance whose numbers are all 0: the most likely of a normal."""

    def __init__(self, count: int):
        self.count = count

    def normal(self, *shape: int) -> Tensor:
        return torch.zeros(self.count, *shape)

    def uniform(self, *shape: int) -> Tensor:
        return torch.full((self.count, *shape), 0.5)


def find_entry(model: Any, folder: Path | None = None, samples: Sequence[Tensor] = ()) -> Entry:
    """What to record of a model; `samples` are inputs of its forward, where they are known."""
    if isinstance(model, PlansActions):
        return find_policy(model)
    if isinstance(model, Generates) and (entry := find_step(model)):
        return entry
    names = list_inputs(model)
    if names[:1] == ["graph"]:
        raise Mistake(
            f"a {type(model).__name__} takes a graph, whose links decide what is added to what; ONNX has no such "
            f"input: --to safetensors keeps the weights"
        )
    if samples:
        given = [Given(name, x, choose_axes(name, x)) for name, x in zip(names, samples, strict=False)]
    else:
        given = [Given(name, x, choose_axes(name, x)) for name, x in make_inputs(model, folder, names).items()]
    return Entry(model, tuple(given), *describe(model))


def list_inputs(model: nn.Module) -> list[str]:
    """The inputs that forward needs; and the mask, which says what of a text is real."""
    parameters = inspect.signature(type(model).forward).parameters
    return [name for name, p in list(parameters.items())[1:] if p.default is p.empty or name == "mask"]


def choose_axes(name: str, x: Tensor) -> tuple[str, ...]:
    """Captions have a fixed length; source and target have lengths of their own."""
    axes = name_axes(x)
    if name == "captions":
        return (axes[0], *[""] * (x.dim() - 1))
    return tuple(f"target_{axis}" if axis == LENGTH and name == "target" else axis for axis in axes)


def describe(model: Any) -> tuple[str, str]:
    """What the graph computes, and what it leaves out."""
    if isinstance(model, Detects):
        return "all that the model finds, before boxes are chosen", "decoding and suppression (`decode` of the model)"
    if isinstance(model, Generates):
        return "the model's forward pass", "the sampler's loop"
    whole: Any = model
    if isinstance(model, HasDecoder) and "target" not in list_inputs(whole) and "vocab" in vars(whole.config):
        return "logits of every next token of a whole text", "the key-value cache, and the choice of tokens"
    return "the model's forward pass", "what is done to inputs before it, and to outputs after it"


def make_inputs(model: Any, folder: Path | None, names: Sequence[str]) -> dict[str, Tensor]:
    """Random inputs of the sizes that config and preprocessing say."""
    made: dict[str, Tensor] = {}
    for name in names:
        maker = MAKERS.get("tokens" if name in TEXTS else name)
        if maker is None:
            raise Mistake(f"no example of {name!r}, which a {type(model).__name__} takes, can be made up here")
        made[name] = maker(model.config, folder, made)
    return made


def make_tokens(config: Any, folder: Path | None, made: Mapping[str, Tensor]) -> Tensor:
    text = getattr(config, "text", config)
    context = getattr(text, "context", WORDS)
    length = min(WORDS, context) if isinstance(context, int) else WORDS
    tokens = torch.randint(text.vocab, (ROWS, length), generator=torch.Generator().manual_seed(0))
    if isinstance(end := getattr(text, "end", None), int) and text is not config:  # of a CLIP: where it reads the text
        tokens[:, -1] = end
    return tokens


def make_mask(config: Any, folder: Path | None, made: Mapping[str, Tensor]) -> Tensor:
    of = made.get("tokens", made.get("source"))
    return torch.ones(ROWS, WORDS if of is None else of.shape[1], dtype=torch.bool)


def make_x(config: Any, folder: Path | None, made: Mapping[str, Tensor]) -> Tensor:
    """An image, as the preprocessing makes it or as the config says; or a row of numbers."""
    fields = vars(config)
    size = next((fields[name] for name in ("inputs", "size", "observations") if isinstance(fields.get(name), int)), 0)
    image = fields.get("image")
    shape: tuple[int, ...]
    if (found := read_image(folder)) is not None:
        shape = found
    elif isinstance(image, tuple):
        shape = image
    elif "channels" in fields or image is not None:
        of = vars(image) if image is not None else fields
        side = next((of[name] for name in ("side", "size") if isinstance(of.get(name), int)), SIDE)
        shape = (of["channels"], side, side)
    elif size:
        shape = (size,)
    else:
        raise Mistake(f"{folder}: nothing says how large the model's input is; it is no image, text or row of numbers")
    return torch.randn(ROWS, *shape, generator=torch.Generator().manual_seed(1))


def read_image(folder: Path | None) -> tuple[int, int, int] | None:
    """Channels, height and width of what the folder's preprocessing makes; None where there is none."""
    if folder is None or not (folder / IMAGES).is_file():
        return None
    from descend.data.detection.prepare import DetectionPreprocessing
    from descend.data.images.labelled import Preprocessing

    values = read_json(folder / IMAGES)
    kind: Any = DetectionPreprocessing if "do_pad" in values or "pad_size" in values else Preprocessing
    channels, height, width = kind.read(folder).image
    return channels, height, width


def make_observation(config: Any, folder: Path | None, made: Mapping[str, Tensor]) -> Tensor:
    """A row of numbers; for a table of states their numbers."""
    if "width" not in vars(config):
        return torch.arange(ROWS) % config.observations
    return torch.randn(ROWS, config.observations, generator=torch.Generator().manual_seed(2))


Maker = Callable[[Any, Path | None, Mapping[str, Tensor]], Tensor]
MAKERS: dict[str, Maker] = {"tokens": make_tokens, "mask": make_mask, "x": make_x, "observation": make_observation}


def make_noise(name: str) -> Maker:
    """z of a generator's config, or its noise for every pixel."""

    def make(config: Any, folder: Path | None, made: Mapping[str, Tensor]) -> Tensor:
        return torch.randn(ROWS, getattr(config, name), generator=torch.Generator().manual_seed(4))

    return make


MAKERS |= {"z": make_noise("latent"), "noise": make_noise("noise")}


def find_policy(model: Any) -> Entry:
    """The plan of what is seen; of a policy that denoises one step, whose noise is an input."""
    random = torch.Generator().manual_seed(3)
    config = model.config
    seen = {"state": torch.randn(ROWS, config.state, generator=random)}
    if image := vars(config).get("image"):
        seen["image"] = torch.rand(ROWS, 3, *image, generator=random)
    if "words" in vars(config):
        seen["tokens"] = torch.randint(1, len(config.words) + 1, (ROWS, config.longest), generator=random)
    if "noisy" in list_inputs(model):
        noisy, t = torch.randn(ROWS, model.chunk, config.actions, generator=random), torch.tensor([0, 1])
        given = give({"noisy": noisy, "t": t, **seen})
        return Entry(model, given, "one denoising step of the next actions", "the loop over steps, and the controller")
    return Entry(Plan(model, tuple(seen)), give(seen), "the next actions, standardization included", "the controller")


def find_step(model: Any) -> Entry | None:
    """What a generator calls when it makes examples; None where it calls nothing as a whole."""
    calls = watch(model, lambda: model.generate(PerExample(0, ROWS), make_wish(model)))
    whole = [call for call in calls if call.module is model]
    parts = [call for call in calls if call.name and "." not in call.name]
    parts.sort(key=lambda call: -count_numbers(call.module))
    found = whole or [call for call in parts[:1] if LEAST * count_numbers(model) <= count_numbers(call.module)]
    if not found:
        return None
    call = found[0]
    name = f"{call.name} of {type(model).__name__}" if call.name else type(model).__name__
    tensors = dict(call.tensors)
    if list(tensors) == ["tokens"]:
        made = {"tokens": make_tokens(call.module.config, None, {})}
        given = tuple(Given(key, x, choose_axes(key, x)) for key, x in made.items())
        return Entry(
            call.module, given, f"logits of every next token ({name})", "the choice of tokens, and the images of them"
        )
    for key in TIMES & set(call.constants):  # a number for all examples; here each has its own
        tensors[key] = torch.full((ROWS,), call.constants[key])
    constants = {key: value for key, value in call.constants.items() if key not in tensors}
    what = "one step of the sampler" if TIMES & set(tensors) else "what making examples calls"
    left = "the sampler's loop, and standardization" if TIMES & set(tensors) else "the noise, and what is done after it"
    return Entry(call.module, give(tensors), f"{what}: {name}({', '.join(tensors)})", left, constants)


def count_numbers(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def make_wish(model: Any) -> Wish:
    """Two steps, and a class where classes are understood."""
    offers = model.offers
    classes = getattr(model.config, "classes", None)
    conditional = "classes" in offers and "steps" not in offers and classes
    return Wish(
        steps=STEPS if "steps" in offers else 0, classes=torch.zeros(ROWS, dtype=torch.long) if conditional else None
    )


def give(tensors: Mapping[str, Tensor]) -> tuple[Given, ...]:
    """Inputs whose rows vary; sizes of images, codes and prompts do not."""
    return tuple(
        Given(name, x.detach().clone(), (BATCH if x.dim() and len(x) == ROWS else "", *[""] * (x.dim() - 1))[: x.dim()])
        for name, x in tensors.items()
    )


def watch(model: nn.Module, run: Callable[[], object]) -> list[Call]:
    """The calls of the module and of its parts while it runs: of each part the first."""
    calls: dict[str, Call] = {}

    def note(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
            bound = inspect.signature(module.forward).bind(*args, **named).arguments
            tensors = {k: v for k, v in bound.items() if isinstance(v, Tensor)}
            others = {k: v for k, v in bound.items() if v is not None and not isinstance(v, Tensor)}
            if tensors and name not in calls:
                calls[name] = Call(name, module, tensors, others)

        return hook

    parts = [("", model), *model.named_children()]
    hooks = [part.register_forward_pre_hook(note(name), with_kwargs=True) for name, part in parts]
    try:
        with torch.no_grad():
            run()
    except (Mistake, RuntimeError, ValueError, NotImplementedError, TypeError):
        pass  # what was called before it failed counts: a pipeline may lack its tokenizer
    finally:
        for hook in hooks:
            hook.remove()
    return list(calls.values())


def sample_inputs(model: nn.Module) -> tuple[Tensor, ...]:
    """TINY_INPUT of a model's file, where its config is TINY; nothing where the file has none."""
    file: Any = sys.modules[type(model).__module__]
    sample = getattr(file, "TINY_INPUT", None)
    if sample is None:
        return ()
    found = sample()
    return tuple(found) if type(found) is tuple else (found,)
