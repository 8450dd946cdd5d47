"""What a policy shows: the episodes while it learned, and what it makes of the states of cart-pole."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.data.control.environments import Environments

RECENT = 20  # episodes in the running mean
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
