"""Worked examples of cameras, frames, chunks of actions and latency."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.robotics.camera import back_project, box_centre, intrinsics
from descend.ops.robotics.rigid import check_rigid, make_rigid, move_points
from descend.theory.latency import BOOK, Budget


def locate(i: Inputs) -> Inputs:
    k = intrinsics((i["f"], i["f"]), tuple(i["c"]))
    u, v = centre = box_centre(real(i["bbox"]))
    x, y, z = back_project(centre, real(i["d"]), k)
    numerators = (centre - k[:2, 2]) * i["d"]
    return {"u": u, "v": v, "X_numerator": numerators[0], "Y_numerator": numerators[1], "X": x, "Y": y, "Z": z}


def to_robot(i: Inputs) -> Inputs:
    t = check_rigid(real(i["T"]))
    r = t[:3, :3]
    return {
        "p_robot": move_points(t, real(i["p_cam"])[None])[0],
        "det_R": torch.linalg.det(r),
        "orthogonal": bool(torch.equal(r.mT @ r, torch.eye(3, dtype=torch.float64))),
    }


def reflected(i: Inputs) -> Inputs:
    """What the printed numbers come from; `check_rigid` would refuse it."""
    r = torch.diag(real([1, -1, 1]))
    seen = real([[-0.35 / 6, -0.2 / 6, 0.5]])
    return {"p_robot": move_points(make_rigid(r, real(i["t"])), seen)[0], "det_R": torch.linalg.det(r)}


def chunk(i: Inputs) -> Inputs:
    from descend.data.control.scripted import PHASES, plan_phases

    steps = plan_phases(1)
    assert [PHASES[name] for name in PHASES] == list(i.values())
    return {"T_a": len(steps), "action_dim": 7, "chunk_values": len(steps) * 7}


def latency(i: Inputs) -> Inputs:
    budget = Budget(dict(zip(BOOK, i["ms"], strict=True)))
    return {"total_ms": budget.total, "max_hz": budget.hertz}


def loop(i: Inputs) -> Inputs:
    return {"period_ms": 1000 / i["hz"], "slack_ms": Budget(BOOK).slack(i["hz"])}


EXAMPLES: dict[str, Compute] = {
    "MF-30.2.2-backproject": locate,
    "MF-30.2.3-camera-to-robot": to_robot,
    "MF-30.2.3-printed-result-origin": reflected,
    "MF-30.3.4-phases": chunk,
    "MF-30.5-latency": latency,
    "MF-30.5-loop": loop,
}

SET_ASIDE: dict[str, str] = {
    "MF-30.3.2-cube-position": "depth, camera matrix and hand-eye pose of this example are not printed",
}
