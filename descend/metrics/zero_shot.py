"""Zero-shot classification: a class is a text, and an image belongs to the text nearest to it.

    T_c = text_encoder("a photo of {class c}")                 c = 1 .. C
    class of x = argmax_c cos(I(x), T_c)

With several templates the unit vectors of a class are averaged and made a unit vector again: an ensemble in the joint
space, as cheap at test as one prompt. It is retrieval of the nearest of C texts; no label was ever trained on, so any
set of names will do, also of classes that no image in training had.

Systems: zero-shot-classification
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor
from torch.nn.functional import normalize

from descend.errors import Mistake

TEMPLATES = ("a photo of {}",)


def prompts(names: Sequence[str], templates: Sequence[str] = TEMPLATES) -> list[str]:
    """Every template for every name, name by name."""
    if not names or not templates:
        raise Mistake(f"{len(names)} classes and {len(templates)} templates: give at least one of each")
    for template in templates:
        if template.count("{}") != 1:
            raise Mistake(f"template {template!r}: write {{}} once, where the class stands")
    return [template.replace("{}", name) for name in names for template in templates]


def class_vectors(
    encode: Callable[[list[str]], Tensor], names: Sequence[str], templates: Sequence[str] = TEMPLATES
) -> Tensor:
    """T (C, d) of length 1; `encode` makes vectors (n, d) of n texts."""
    vectors = normalize(encode(prompts(names, templates)), dim=-1)
    return normalize(vectors.unflatten(0, (len(names), len(templates))).mean(1), dim=-1)


def class_scores(images: Tensor, classes: Tensor) -> Tensor:
    """cos(I, T_c): images (n, d) and classes (C, d) -> (n, C); the largest names the class."""
    return normalize(images, dim=-1) @ normalize(classes, dim=-1).T
