"""The map of a space and the answers of a search, drawn."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from descend.interpret.representations import project
from descend.views.pixels import channels_last
from descend.web.markup import Html, html
from descend.web.palette import PALETTE
from descend.web.parts import make_card, make_images, make_legend, make_note, make_table
from descend.web.pixels import encode_image
from descend.workbench.space import Space

MAPPED, PICTURED, WORDED = 600, 300, 120  # inputs of a map, at most: as dots, as pictures, as words
WIDE, HIGH, EDGE = 1000, 640, 34
SIDE, DOT = 28, 4.0  # of a picture in the map, and the radius of a dot
FOUND = 24
LONGEST, LETTERS = 20, 300  # letters of a word in the map, and of a text that was found
By = Literal["pca", "tsne"]


def draw_map(space: Space, by: By) -> Html:
    """Every input where its vector lies: a picture, a word or a dot, in the colour of its class."""
    most = PICTURED if space.images is not None else WORDED if are_words(space) else MAPPED
    rows = torch.linspace(0, len(space.names) - 1, min(most, len(space.names))).round().long()
    xy = place(project(space.x[rows], by))
    names = list(dict.fromkeys(sorted(space.groups)))
    marks = [draw_mark(space, i, at, names) for i, at in zip(rows.tolist(), xy.tolist(), strict=True)]
    shown = f"{len(rows):,} of {len(space.names):,} inputs" if len(rows) < len(space.names) else f"{len(rows):,} inputs"
    how = {
        "pca": "the two directions in which the vectors vary most (PCA)",
        "tsne": "t-SNE: neighbours are near; how far groups lie apart means nothing",
    }[by]
    legend = make_legend((name, k % PALETTE) for k, name in enumerate(names)) if 1 < len(names) <= PALETTE else None
    chart = html('<svg class="map" viewBox="0 0 {} {}" role="img" aria-label="map">{}</svg>', WIDE, HIGH, marks)
    return make_card("Map of the vectors", legend, html('<div class="big">{}</div>', chart), note=f"{shown}; {how}.")


def place(xy: Tensor) -> Tensor:
    """Points in the chart's own pixels."""
    low, high = xy.min(0).values, xy.max(0).values
    share = (xy - low) / (high - low).clamp(min=1e-12)
    share[:, 1] = 1 - share[:, 1]
    return EDGE + share * (torch.tensor([WIDE, HIGH], dtype=share.dtype) - 2 * EDGE)


def draw_mark(space: Space, i: int, at: list[float], names: list[str]) -> Html:
    """An input of the map; the mouse shows its name."""
    x, y = at
    group = space.groups[i] if space.groups else ""
    colour = names.index(group) % PALETTE if group else 0
    title = html("<title>{}</title>", f"{space.names[i]}: {group}" if group else space.names[i])
    if space.images is not None:
        left, top, side = round(x - SIDE / 2, 1), round(y - SIDE / 2, 1), SIDE
        image = html('<image href="{}" x="{}" y="{}" width="{}" height="{}"/>', thumb(space, i), left, top, side, side)
        frame = html('<rect class="c{}" x="{}" y="{}" width="{}" height="{}"/>', colour, left, top, side, side)
        return html("<g>{}{}{}</g>", title, image, frame if group else None)
    if are_words(space):
        return html('<text x="{:.1f}" y="{:.1f}">{}{}</text>', x, y, space.names[i], title)
    return html('<g class="dots c{}"><circle cx="{:.1f}" cy="{:.1f}" r="{}">{}</circle></g>', colour, x, y, DOT, title)


def are_words(space: Space) -> bool:
    """Whether the inputs are short enough to be written where they lie."""
    return space.images is None and not space.groups and max(map(len, space.names)) <= LONGEST


def thumb(space: Space, i: int) -> str:
    assert space.images is not None
    return encode_image(channels_last(space.images[i : i + 1])[0])


def draw_found(space: Space, found: list[tuple[int, float]]) -> Html:
    """The nearest inputs, the nearest first."""
    note = f"The {len(found)} nearest of {len(space.names):,}, by the cosine of their vectors."
    if space.images is None:
        rows = [[f"{cosine:.3f}", space.names[i][:LETTERS]] for i, cosine in found]
        return make_card("Found", make_table(("cosine", "text"), rows), note=note)
    captions = [f"{cosine:.3f} · {name(space, i)}" for i, cosine in found]
    return make_card("Found", make_note(note), make_images([thumb(space, i) for i, _ in found], captions, 128))


def name(space: Space, i: int) -> str:
    """With its class, where the name does not say it."""
    group, said = space.groups[i] if space.groups else "", space.names[i]
    return f"{group}, {said}" if group and not set(group.split()) & set(said.split()) else said
