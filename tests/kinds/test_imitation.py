"""Imitation recipes: they learn, play, read files of demonstrations, and refuse what does not fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from descend import recipes
from descend.data.control.arm_camera import fixed_camera
from descend.data.control.arm_world import ArmWorld
from descend.data.control.demonstrations import record, write_demonstrations
from descend.data.control.episodes import AverageChunks, RunChunks, Senses, play
from descend.data.control.scripted import ScriptedPolicy
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.training import Training
from descend.errors import Mistake
from descend.kinds.imitation import (
    Demonstrations,
    DiffuseActions,
    FollowInstructions,
    ImitateByStyle,
    ImitateDemonstrations,
    RegressActions,
    swap_colours,
    swap_words,
)
from descend.models.act import ACTConfig
from descend.models.cloning_policy import CloningPolicyConfig
from descend.models.diffusion_policy import DiffusionPolicyConfig
from descend.models.vla_policy import VLAConfig
from descend.optim.rules import AdamW

FEW = Demonstrations(episodes=6, pace=1, valid=3, test=4)
LOOP = Loop(steps=4, batch=8)
SMALL: dict[str, ImitateDemonstrations] = {
    "cloning": RegressActions(model=CloningPolicyConfig(chunk=4, width=16, depth=1), data=FEW, loop=LOOP),
    "act": ImitateByStyle(model=ACTConfig(chunk=4, latent=2, width=8, heads=2, hidden=8, depth=1), data=FEW, loop=LOOP),
    "diffusion": DiffuseActions(
        model=DiffusionPolicyConfig(chunk=4, width=8, heads=2, hidden=8, depth=1), data=FEW, loop=LOOP
    ),
    "vla": FollowInstructions(
        model=VLAConfig(chunk=4, width=8, heads=2, hidden=8, depth=1),
        data=replace(FEW, task="sort", height=16, width=24),
        swaps=2,
        loop=LOOP,
    ),
}


def advance(recipe: ImitateDemonstrations, steps: int = 2) -> Training:
    torch.set_num_threads(1)
    training = Training(recipe.build(), recipe.loop, recipe.schedule, World())
    for _ in range(steps):
        training.advance()
    return training


@pytest.mark.parametrize("name", SMALL)
def test_each_learns_plays_and_is_scored(name: str) -> None:
    training = advance(SMALL[name])
    scores = training.evaluate()
    assert {"success", "loss", "error"} <= scores.keys()
    assert 0 <= scores["success"] <= 1
    if name == "vla":
        assert {"named", "words_swap", "colours_swap"} <= scores.keys()


@pytest.mark.system("diffusion-policy", "interface", "recipe")
@pytest.mark.system("act-policy", "recipe")
def test_all_policies_play_in_the_same_loop() -> None:
    for name in ("cloning", "act", "diffusion"):
        parts = SMALL[name].build()
        for execute in (RunChunks(2), AverageChunks(0.01)):
            senses = FEW.senses()
            played = play(parts.task.plan, senses, senses.world.reset([1, 2]), [1, 2], execute)
            assert played.scores["success"].shape == (2,)


def test_a_short_training_lowers_the_error_on_held_out_demonstrations() -> None:
    recipe = replace(
        SMALL["act"],
        model=ACTConfig(chunk=16, latent=4, width=32, heads=2, hidden=64, depth=1),
        data=replace(FEW, episodes=40, valid=1),
        optim=AdamW(3e-3),
        loop=Loop(steps=80, batch=64, clip=1.0),
    )
    training = advance(recipe, 0)
    before = training.evaluate()["error"]
    for _ in range(80):
        training.advance()
    assert training.evaluate()["error"] < 0.7 * before


@pytest.mark.system("diffusion-policy", "receding-horizon")
def test_part_of_a_chunk_is_executed_then_the_policy_is_asked_again() -> None:
    world = ArmWorld(pace=1)
    policy = ScriptedPolicy(world)
    asked: list[int] = []

    def plan(seen, chance):  # type: ignore[no-untyped-def]
        asked.append(len(seen["state"]))
        return torch.cat([torch.zeros(2, 16, 6), torch.ones(2, 16, 1)], -1)

    for execute, times in ((RunChunks(8), 4), (RunChunks(16), 2), (RunChunks(1), 26), (AverageChunks(0.1), 26)):
        asked.clear()
        play(plan, Senses(world), world.reset([0, 1]), [0, 1], execute)
        assert len(asked) == times  # of 26 steps
    played = play(policy.plan, Senses(world), world.reset([0, 1]), [0, 1], RunChunks(16))
    assert played.scores["success"].tolist() == [1.0, 1.0]
    assert max(played.steps.tolist()) <= 16


def test_the_recipes_are_the_ones_that_are_named() -> None:
    assert isinstance(recipes.get("act-pick-place"), ImitateByStyle)
    assert isinstance(recipes.get("vla-sort"), FollowInstructions)
    act = recipes.get("act-pick-place")
    assert (act.model.chunk, act.data.test, act.execute) == (16, 200, AverageChunks(0.01))


def test_episodes_that_test_are_not_those_that_select() -> None:
    recipe = SMALL["act"]
    valid, test = next(iter(recipe.build().valid)), next(iter(recipe.test()))
    assert len(valid["seed"]) == 3
    assert len(test["seed"]) == 4
    assert not {*valid["seed"].tolist()} & {*test["seed"].tolist()}


@pytest.mark.system("pick-and-place", "demonstrations")
def test_a_file_of_demonstrations_teaches_as_scripted_ones_do(tmp_path: Path) -> None:
    path = tmp_path / "demos.safetensors"
    train, held = FEW.read()
    whole = record(FEW.world, [1, 2, 3, 4], 0.01)
    write_demonstrations(path, whole, "pick-place", 1)
    from_file = replace(FEW, path=str(path))
    learned, kept = from_file.read()
    assert (len(train), len(held), len(learned), len(kept)) == (6, 1, 3, 1)
    assert advance(replace(SMALL["act"], data=from_file)).evaluate()["error"] > 0
    with pytest.raises(Mistake, match=r"demonstrations of 'pick-place'; give --data.task pick-place"):
        replace(from_file, task="sort").read()
    save_file({"state": torch.zeros(3, 4, 7), "command": torch.zeros(3, 4, 7)}, path)
    with pytest.raises(Mistake, match="it has no images and instructions"):
        replace(from_file, height=16, width=24).read()
    with pytest.raises(Mistake, match="states of 7 and commands of 7 numbers; the task pick-place has 10 and 7"):
        from_file.read()
    seen = record(ArmWorld(2, 2, 1), [1, 2], 0.01, fixed_camera(16, 24))
    write_demonstrations(path, seen, "sort", 1)
    images = replace(from_file, task="sort", height=16, width=24)
    assert advance(replace(SMALL["vla"], data=images)).evaluate()["error"] > 0
    with pytest.raises(Mistake, match=r"its images are 16×24, not --data.height 24 --data.width 24"):
        replace(images, height=24).read()


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (replace(SMALL["act"], data=replace(FEW, height=16)), r"--data.height 16 and --data.width 0: give both"),
        (replace(SMALL["cloning"], data=replace(FEW, height=16, width=16)), "CloningPolicyConfig has no camera"),
        (replace(SMALL["vla"], data=FEW), "this policy sees; give --data.height"),
        (replace(SMALL["vla"], data=replace(FEW, task="sort", height=15, width=16)), "both sides must be even"),
        (replace(SMALL["act"], data=replace(FEW, path="nowhere.safetensors")), "no file of demonstrations"),
    ],
)
def test_what_does_not_fit_is_named(recipe: ImitateDemonstrations, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        recipe.build()


def test_swaps_mean_the_other_cube() -> None:
    scene = ArmWorld(2, 2).reset(range(5))
    words, colours = swap_words(scene), swap_colours(scene)
    rows = torch.arange(5)
    assert torch.equal(words.target, 1 - scene.target)
    assert torch.equal(words.paint, scene.paint)
    assert torch.equal(colours.paint[rows, colours.target], scene.paint[rows, scene.target])  # the same words
    assert torch.equal(colours.of_target(), words.of_target())  # the other place


@pytest.mark.system("pick-and-place", "film")
def test_the_report_has_films_of_episodes() -> None:
    training = advance(SMALL["vla"])
    film, stills = training.parts.exhibits()  # type: ignore[misc]
    assert (film.kind, stills.kind) == ("film", "sheet")
    assert film.content["frames"].shape[0] == len(film.content["captions"]) == 6
    assert "cube" in film.content["captions"][0]
    assert stills.content["rows"].shape[:2] == (3, 8)
