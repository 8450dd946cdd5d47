"""What a policy shows: the episodes while it learned, and what it makes of the states of cart-pole."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.data.control.environments import Environments, episode_seed
from descend.errors import Mistake
from descend.views.worlds import Filming, choose_frames

RECENT = 20  # episodes in the running mean
FILMS, FRAMES, STILLS = 3, 60, 8
REPORTED = 4  # first number of a seed's path, beside those of training, validation, test and playing
CELLS = 25  # of a map, in each direction
LABELS = {"row_label": "angular velocity, radians per second", "column_label": "pole angle, degrees"}


def show_episodes(envs: Environments) -> Exhibit:
    """Return of the training episodes, as they finished, and the mean of the last ones."""
    x, y = [step for step, _ in envs.finished], [total for _, total in envs.finished]
    mean = [sum(last) / len(last) for i in range(len(y)) if (last := y[max(0, i + 1 - RECENT) : i + 1])]
    content = {
        "x": x,
        "y": {"episode return": y, f"mean of the last {RECENT}": mean},
        "x_label": "environment steps",
        "y_label": "return",
    }
    return Exhibit("curve", "Training episodes", content, "Every finished episode, exploration included.")


def show_lengths(envs: Environments) -> Exhibit:
    """Steps of the training episodes, as they finished, and the mean of the last ones."""
    x, y = [step for step, _ in envs.finished[-len(envs.lengths) :]], envs.lengths
    mean = [sum(last) / len(last) for i in range(len(y)) if (last := y[max(0, i + 1 - RECENT) : i + 1])]
    content = {
        "x": x if y else [],
        "y": {"episode length": y, f"mean of the last {RECENT}": mean},
        "x_label": "environment steps",
        "y_label": "steps",
    }
    return Exhibit("curve", "Length of the training episodes", content, "Ended by the world or by a time limit.")


def show_policy(env: str, act: Callable[[Tensor], Tensor], longest: int = 0) -> list[Exhibit]:
    """Films of a few greedy episodes and one as a strip of stills; nothing where there are no pictures."""
    try:
        filming = Filming(env, longest)
        with torch.no_grad():
            filmed = [filming.film(act, episode_seed(REPORTED, i)) for i in range(FILMS)]
    except Mistake:
        return []
    captions = [f"return {found.total:.6g} in {found.steps} steps" for found in filmed]
    most = min(FRAMES, max(len(found.frames) for found in filmed))
    films = [choose_frames(found.frames, most) for found in filmed]
    even = np.stack([np.stack(film + film[-1:] * (most - len(film))) for film in films]) / 255
    stills = np.stack(choose_frames(films[0], STILLS))[None] / 255
    note = "Greedy episodes from seeds that no training, validation or test uses."
    return [
        Exhibit("film", "Episodes", {"frames": even, "captions": captions}, note),
        Exhibit("sheet", "Step by step", {"rows": stills, "captions": captions[:1]}, "The first of them."),
    ]


def map_states(env: str, view: Callable[[Tensor], dict[str, Tensor]]) -> list[Exhibit]:
    """For cart-pole: what the model makes of each pole angle and angular velocity."""
    if not env.startswith("CartPole"):
        return []
    angle, speed = np.linspace(-12, 12, CELLS), np.linspace(-3, 3, CELLS)  # degrees; radians per second
    state = torch.zeros(CELLS, CELLS, 4)
    state[..., 2] = torch.from_numpy(np.deg2rad(angle)).float()
    state[..., 3] = torch.from_numpy(speed).float()[:, None]
    rows, columns = [f"{s:+.2f}" for s in speed], [f"{a:+.0f}" for a in angle]
    note = "Cart at rest in the middle."
    with torch.no_grad():
        return [
            Exhibit("heatmap", title, {"values": v.cpu().tolist(), "rows": rows, "columns": columns, **LABELS}, note)
            for title, v in view(state).items()
        ]


def view_values(q: Tensor) -> dict[str, Tensor]:
    """Q-values (.., 2) as two maps."""
    return {"State value, max Q": q.amax(-1), "Advantage of pushing right, Q(right) − Q(left)": q[..., 1] - q[..., 0]}


def view_policy(logits: Tensor, value: Tensor) -> dict[str, Tensor]:
    """Policy logits (.., 2) and values (..) as two maps."""
    p = logits.softmax(-1)
    return {"State value, V": value, "Mean action: right +1, left −1": p[..., 1] - p[..., 0]}
