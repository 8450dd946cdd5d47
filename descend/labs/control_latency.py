"""The latency of a control loop, stage by stage: camera, detection, localisation, policy, kinematics, transmission.

    MF 30.5: 5 + 15 + 2 + 20 + 10 + 5 = 57 ms, 17.5 Hz

The simulated loop does the same work on this machine: a camera of 96×128 pixels is rendered, a detector of colours
finds the cube, its pixels are back-projected and moved to the robot's frame, an ACT of 535,623 parameters plans 16
actions of 7 numbers (with untrained weights: they take as long), a command is limited, and the arm answers. Medians of
one core over many plans. What a stage takes on a real robot is another matter: its camera and its detector are others.

Systems: perception-control-pipeline
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch

from descend.data.control.arm_camera import fixed_camera
from descend.data.control.arm_world import PAINTS, ArmWorld
from descend.data.control.episodes import RunChunks
from descend.errors import Mistake
from descend.inference.control_loop import ControlLoop
from descend.labs._evidence import AtMost
from descend.models.act import ACT, ACTConfig
from descend.theory.latency import BOOK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-C.102",)
PRINTED = "A latency budget of 5 + 15 + 2 + 20 + 10 + 5 = 57 ms, so at most 17.5 Hz."
CLAIM = "The simulated loop from camera to arm stays within the book's 57 ms, so that it can run at 17.5 Hz."
PREDICTIONS = (
    AtMost(
        "total",
        57,
        "Milliseconds: the sum of the stages' medians on this machine; more refutes that the loop fits.",
    ),
)
SCOPE = "A simulated camera, detector and arm on one core; the stages of a real robot are others."
BUDGET = 6.0


def measure(seed: int, budget: float) -> dict[str, Any]:
    """The median of every stage in ms, their sum, and the frequency that it allows."""
    torch.manual_seed(seed)
    world = ArmWorld()
    loop = ControlLoop.make(world, fixed_camera(96, 128), ACT(ACTConfig()).eval(), RunChunks(4))
    end, episode = time.perf_counter() + budget, 0
    while episode < 2 or time.perf_counter() < end:
        scene = world.reset([1000 * seed + episode])
        with suppress(Mistake):  # the policy is untrained: where its arm hides the cube, the episode ends
            loop.run(scene.changed(grip=torch.ones(1, dtype=torch.float64)), f"pick {PAINTS[int(scene.paint[0, 0])]}")
        episode += 1
    found = loop.watch.budget()
    return {
        "stages": dict(found.stages),
        "total": found.total,
        "hertz": found.hertz,
        "slack_at_10_hertz": found.slack(10),
        "over": found.over(BOOK),
        "plans": len(loop.watch.times["policy"]),
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {"total": numbers["total"]}


def figure(numbers: dict[str, Any]) -> Figure:
    """The book's stages and ours, end to end."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 2.2), layout="constrained")
    axes = fig.subplots()
    for row, stages in enumerate((BOOK, numbers["stages"])):
        left = 0.0
        for i, (name, took) in enumerate(stages.items()):
            axes.barh(row, took, left=left, color=f"C{i}", label=name if row == 0 else None)
            left += took
    axes.set_yticks([0, 1], ["book", "here"])
    axes.set_xlabel("milliseconds")
    axes.legend(ncols=6, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.35))
    return fig
