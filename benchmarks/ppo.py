"""PPO on CartPole beside Stable-Baselines3, at equal work: 2,048 steps of one environment, then 10 epochs of batches
of 64, a 64 × 64 tanh network for the actor and one for the critic, Adam, clipping at 0.5. Both on one thread.

The second row is the recipe as it is trained: sixteen environments, 1,024 steps, 8 epochs of 4 minibatches.
Where our time goes is told beside: environment, acting, loss and gradients, optimizer, and what the engine adds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from benchmarks.turns import take_turns

LENGTH, BATCH, EPOCHS = 2048, 64, 10


def training(name: str = "ppo-cartpole", equal: bool = True) -> Any:
    """The engine's own loop, without evaluation, logs and checkpoints."""
    torch.set_num_threads(1)
    from descend import recipes
    from descend.engine.distributed import World
    from descend.engine.training import Training

    found: Any = recipes.get(name)
    if equal:
        found = replace(
            found,
            data=replace(found.data, length=LENGTH),
            ppo=replace(found.ppo, gamma=0.99, lam=0.95, eps=0.2, epochs=EPOCHS, minibatches=LENGTH // BATCH),
            optim=replace(found.optim, lr=3e-4, eps=1e-5),
            loop=replace(found.loop, batch=1, steps=10_000),
        )
    return Training(found.build(), found.loop, found.schedule, World())


def ours() -> Callable[[], object]:
    return training().advance


def recipe() -> Callable[[], object]:
    return training(equal=False).advance


def theirs() -> Callable[[], object]:
    torch.set_num_threads(1)
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", "CartPole-v1", n_steps=LENGTH, batch_size=BATCH, n_epochs=EPOCHS, seed=0, device="cpu")
    return lambda: model.learn(LENGTH, reset_num_timesteps=False)


def milliseconds(call: Callable[[], object], repeats: int) -> float:
    """Processor time of the best of several calls, which what else runs on the machine disturbs least."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return 1000 * min(times)


def break_down() -> dict[str, float]:
    """Processor milliseconds of one step of the training at equal work, and of its parts."""
    run = training()
    run.advance()
    rollout, task = run.parts.stream, run.task
    batch = next(rollout)
    envs, still = rollout.stream.envs, np.zeros(1, np.int64)

    def step_environments() -> None:
        for _ in range(LENGTH):
            envs.step(still)

    def differentiate() -> None:
        for move in task.moves(batch):
            move.value().total().backward()

    def update() -> None:
        for _ in range(EPOCHS * LENGTH // BATCH):
            run.optims["policy"].step()

    parts = {
        "environment": milliseconds(step_environments, 4),
        "rollout": milliseconds(lambda: next(rollout), 4),
        "loss and gradients": milliseconds(differentiate, 4),
        "optimizer": milliseconds(update, 4),
        "all minibatches": milliseconds(lambda: run.play([batch]), 4),
    }
    engine = parts["all minibatches"] - parts["loss and gradients"] - parts["optimizer"]
    return {
        "environment": parts["environment"],
        "acting, advantages": parts["rollout"] - parts["environment"],
        "loss and gradients": parts["loss and gradients"],
        "optimizer": parts["optimizer"],
        "clipping, logging, loop": engine,
    }


def measure(rounds: int = 5) -> list[dict[str, object]]:
    times, _ = take_turns({n: f"benchmarks.ppo:{n}" for n in ("ours", "recipe", "theirs")}, rounds, 2)
    speed = {name: LENGTH / min(found) for name, found in times.items()}
    speed["recipe"] = 16 * 64 / min(times["recipe"])
    spent = ", ".join(f"{name} {value:.0f} ms" for name, value in break_down().items())
    common = {"theirs": speed["theirs"], "unit": "environment steps/s"}
    return [
        {"name": "PPO on CartPole, equal work", "ours": speed["ours"], "ratio": speed["ours"] / speed["theirs"],
         "bar": 3.0, "note": f"Stable-Baselines3; of 2,048 steps {spent}", **common},
        {"name": "PPO on CartPole, our recipe", "ours": speed["recipe"], "ratio": speed["recipe"] / speed["theirs"],
         "bar": 8.0, "note": "Stable-Baselines3's defaults; not the same work, the same return", **common},
    ]  # fmt: skip


if __name__ == "__main__":
    for row in measure():
        print(row)
