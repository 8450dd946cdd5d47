"""Demonstrations: chunks lead back to the commands, files come back as they were, bad files are named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from descend.data.control.arm_camera import fixed_camera, render
from descend.data.control.arm_world import JOINTS, ArmWorld
from descend.data.control.demonstrations import (
    Pictures,
    WithPictures,
    read_demonstrations,
    record,
    write_demonstrations,
)
from descend.data.control.detour import DetourWorld
from descend.data.control.instructions import WORDS
from descend.data.streams.arrays import Shuffled
from descend.errors import Mistake
from descend.ops.robotics.execution import to_commands
from tests.close import close


@pytest.mark.system("act-policy", "shape")
def test_every_step_has_its_chunk_of_16_by_7() -> None:
    recorded = record(ArmWorld(), range(4), 0.01)
    rows = recorded.rows(16)
    assert rows["chunk"].shape == (4 * 32, 16, 7)
    assert rows["state"].shape == (4 * 32, 10)
    commands = to_commands(rows["state"][:, :JOINTS], rows["chunk"]).unflatten(0, (4, 32))
    for e, t in ((0, 0), (2, 5), (3, 20)):
        ahead = torch.arange(t, t + 16).clamp(max=31)  # the last command is held
        close(commands[e, t], recorded.command[e, ahead], loosen=10)


@pytest.mark.system("act-policy", "stepwise")
def test_a_chunk_of_one_is_the_next_action() -> None:
    recorded = record(ArmWorld(), range(3), 0.01)
    one, many = recorded.rows(1)["chunk"], recorded.rows(16)["chunk"]
    assert one.shape[1] == 1
    close(one[:, 0], many[:, 0])


def test_noise_pushes_the_arm_and_chunks_lead_back() -> None:
    still, pushed = (record(ArmWorld(), range(3), noise) for noise in (0.0, 0.02))
    close(still.command, pushed.command)
    off = (pushed.state[:, 1:, :JOINTS] - pushed.command[:, :-1, :JOINTS]).std()
    assert 0.01 < off < 0.03
    close(still.state[:, 1:, :JOINTS], still.command[:, :-1, :JOINTS], loosen=10)


def test_the_pillar_is_passed_on_both_sides_and_their_mean_hits_it() -> None:
    world = DetourWorld()
    scene = world.reset(range(200))
    recorded = record(world, range(200), 0.0)
    for commands, expected in (
        (recorded.command, 1.0),
        (recorded.command.mean(0, keepdim=True).expand(200, -1, -1), 0.0),
    ):
        now = scene
        for command in commands.unbind(1):
            now = world.step(now, torch.cat([command[:, :JOINTS] - now.theta, command[:, JOINTS:]], -1))
        judged = world.judge(now)
        assert float(judged["success"].mean()) == expected
        if expected:
            assert 0.4 < float(judged["behind"].mean()) < 0.6


@pytest.mark.system("pick-and-place", "demonstrations")
def test_a_file_comes_back_as_it_was_without_pickle(tmp_path: Path) -> None:
    recorded = record(ArmWorld(2, 2, 1), range(3), 0.01, fixed_camera(16, 24))
    path = tmp_path / "demos.safetensors"
    write_demonstrations(path, recorded, "sort", 1)
    again, header = read_demonstrations(path)
    assert header["task"] == "sort"
    assert again.tokens is not None
    assert recorded.tokens is not None
    assert torch.equal(again.state, recorded.state)
    assert torch.equal(again.command, recorded.command)
    assert torch.equal(again.tokens, recorded.tokens)
    rows = torch.tensor([0, 17, 40])
    assert torch.equal(Pictures(again).take(rows), Pictures(recorded).take(rows))
    assert load_file(path)["image"].dtype == torch.uint8
    assert int(again.tokens.max()) <= len(WORDS)
    assert torch.equal(again.part(1, 3).rows(4)["chunk"], recorded.rows(4)["chunk"][16:])


def test_pictures_are_those_of_the_scenes_and_drawn_once() -> None:
    recorded = record(ArmWorld(2, 2, 1), range(2), 0.01, fixed_camera(16, 24))
    pictures = Pictures(recorded)
    first = pictures.take(torch.tensor([5, 20, 5]))
    assert pictures.drawn.sum() == 2
    scenes = recorded.scenes
    assert scenes is not None
    whole = render(scenes, fixed_camera(16, 24)).image
    assert (first[1] - whole[20]).abs().max() <= 0.5 / 255 + 1e-6
    stream = WithPictures(Shuffled(recorded.rows(4), 4), pictures)
    batch = next(stream)
    state = stream.state_dict()
    after = next(stream)["ids"]
    stream.load_state_dict(state)
    assert torch.equal(next(stream)["ids"], after)
    assert batch["image"].shape == (4, 3, 16, 24)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"state": torch.zeros(2, 3, 4)}, "no tensor 'command'; it has state"),
        (
            {"state": torch.zeros(2, 3), "command": torch.zeros(2, 3, 7)},
            r"state must be numbers of shape .* not \(2, 3\)",
        ),
        (
            {"state": torch.zeros(2, 3, 4), "command": torch.zeros(2, 4, 7)},
            r"state is \(2, 3\) and command \(2, 4\) episodes × steps",
        ),
        (
            {"state": torch.zeros(2, 3, 4), "command": torch.tensor([[[0.0]], [[float("nan")]]]).expand(2, 3, 7)},
            "command of episode 1 has numbers that are not finite",
        ),
    ],
)
def test_a_file_that_does_not_fit_is_named(tensors: dict[str, torch.Tensor], message: str, tmp_path: Path) -> None:
    path = tmp_path / "demos.safetensors"
    save_file({name: x.contiguous() for name, x in tensors.items()}, path)
    with pytest.raises(Mistake, match=message):
        read_demonstrations(path)


def test_what_is_no_file_of_demonstrations_is_named(tmp_path: Path) -> None:
    path = tmp_path / "demos.npz"
    path.write_bytes(b"PK\x03\x04 not safetensors")
    for wrong in (path, tmp_path / "missing"):
        with pytest.raises(Mistake, match=f"{wrong.name}: no file of demonstrations"):
            read_demonstrations(wrong)
