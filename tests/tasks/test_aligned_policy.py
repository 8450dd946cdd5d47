"""PPO on tokens where the best policy near the reference is known: seven answers of known rewards."""

from __future__ import annotations

import copy

import pytest
import torch

from descend.data.text.responses import Responses, respond
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.nn.value_head import WithValues
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine
from descend.tasks.language_policy import LanguagePolicy, ProximalTokens
from descend.theory.regularised_policy import best_policy, kl_to_reference, sampled_value
from tests.tasks.seven_answers import BETA, PROMPT, SMALL, STOP, STRENGTH, Known, log_chances, make_language


def align(seed: int, beta: float, steps: int = 80) -> Training:
    """A run to its end, with rates that fall."""
    model = make_language(seed)
    write = lambda prompts, chance: respond(model.decoder(), prompts, 2, chance, (STOP,))
    held_out = lambda batch: write([PROMPT] * 4000, 0)
    task = LanguagePolicy(
        WithValues(model, SMALL.width), copy.deepcopy(model), Known(), ProximalTokens(beta=beta), held_out
    )
    stream = Responses([PROMPT], write, task.look_back, 128, seed)
    loop = Loop(steps=steps, seed=seed, precision="float32", compile="off", threads=1, clip=1.0)
    parts = Parts(task, model, stream, [], {"policy": Adam(1e-2)})
    run = Training(parts, loop, Cosine(warmup=0, floor=0.01), World())
    for _ in range(steps):
        run.advance()
    return run


@pytest.mark.system("rlhf", "converges")
@pytest.mark.parametrize("seed", range(3))
def test_ppo_comes_to_the_best_policy(seed: int) -> None:
    """KL(π ‖ π_ref e^{r/β} / Z) falls from above 0.1 to at most 1e-3."""
    run = align(seed, BETA)
    with torch.no_grad():
        before, found = log_chances(run.task.reference), log_chances(run.parts.model)  # type: ignore[arg-type]
    best = best_policy(before, STRENGTH.log(), BETA)
    assert float(kl_to_reference(before, best)) > 0.1
    assert float(kl_to_reference(found, best)) < 1e-3


@pytest.mark.system("rlhf", "dear-reference")
def test_a_dear_reference_keeps_the_policy_where_it_was() -> None:
    """β from 0.5 to 100: the KL falls from that of the optimum to nearly nothing, with a critic on the same trunk."""
    divergences = []
    for beta in (BETA, 100.0):
        run = align(0, beta, 60)
        with torch.no_grad():
            found = kl_to_reference(log_chances(run.parts.model), log_chances(run.task.reference))  # type: ignore[arg-type]
        divergences.append(float(found))
    assert divergences[0] > 0.1
    assert divergences[1] < 1e-3


@pytest.mark.system("kl-regularised-objective", "monte-carlo")
def test_what_a_language_model_writes_estimates_its_objective() -> None:
    """Objective and KL of 4000 texts beside their values over all seven answers."""
    run = align(1, BETA, 10)
    with torch.no_grad():
        scores = run.task.score({})
        mine, theirs = log_chances(run.parts.model), log_chances(run.task.reference)  # type: ignore[arg-type]
    kl = kl_to_reference(mine, theirs)
    exact = mine.exp() @ STRENGTH.log() - BETA * kl
    assert float(kl) > 0.02
    assert float(scores["kl"].mean()) == pytest.approx(float(kl), abs=0.03)
    assert float(scores["objective"].mean()) == pytest.approx(float(exact), abs=0.03)
    both = sampled_value(scores["reward"], scores["kl"], BETA)
    assert float(both[0]) == pytest.approx(float(scores["objective"].mean()), abs=1e-5)
