"""How long and how much: a few real steps of a recipe, timed."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import dataclass

import torch

from descend.engine import hardware
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.training import Training
from descend.kinds.memory import build_within_memory
from descend.kinds.recipe import Recipe


@dataclass(frozen=True)
class Measured:
    """What a step and an evaluation cost on this machine, now."""

    loop: Loop
    step: float
    """Seconds a step."""
    evaluation: float
    """Seconds an evaluation."""
    start: float
    """Seconds to read the data and build the model."""
    memory: int
    """Most resident memory so far, in bytes."""
    threads: int
    device: str
    facts: dict[str, object]

    def seconds(self, steps: int | None = None) -> float:
        """The time of a run of this many steps."""
        steps = self.loop.steps if steps is None else steps
        evaluations = max(1, steps // self.loop.eval_every)
        return self.start + steps * self.step + evaluations * self.evaluation

    def steps_within(self, budget: float, most: int = 0) -> int:
        """How many steps fit into a time: at least one, and no more than `most` (0: than the recipe asks for)."""
        per_step = self.step + self.evaluation / self.loop.eval_every
        return max(1, min(most or self.loop.steps, int((budget - self.start - self.evaluation) / per_step)))


@hardware.tell_unsupported()
def measure(recipe: Recipe, steps: int = 6) -> Measured:
    """Build the recipe, take a few steps of it and throw them away."""
    hardware.keep_memory()
    began = time.perf_counter()
    parts = build_within_memory(recipe)
    start = time.perf_counter() - began
    threads = hardware.choose_threads(recipe.loop.threads, parts.task, parts.units_per_batch)
    torch.set_num_threads(threads)
    training = Training(parts, recipe.loop, recipe.schedule, World())
    times = []
    for _ in range(steps):
        before = time.perf_counter()
        training.advance()
        times.append(time.perf_counter() - before)
    before = time.perf_counter()
    training.evaluate()
    evaluation = time.perf_counter() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    typical = sorted(times[1:])[len(times[1:]) // 2]  # the first step also allocates
    facts = {**parts.facts, "parameters": sum(p.numel() for p in parts.model.parameters())}
    device = hardware.name_device(training.device)
    return Measured(recipe.loop, typical, evaluation, start, peak, threads, device, facts)
