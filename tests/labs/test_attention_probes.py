from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import attention_probes
from descend.labs import attention_probes as lab
from descend.labs._evidence import judge_seed
from descend.labs.attention_probes import Head, Recurrent, figure, measure, texts, train_model
from descend.metrics.attention_maps import mass_at

verdict = partial(judge_seed, attention_probes)

SLUG = "attention-head-and-layer-probes"
GOOD: dict[str, Any] = {"steps": 200, "distance": ["1-4", "5-8"], "attention": [1.0, 0.99], "recurrent": [0.5, 0.4],
                        "weight_on_source": {"copy": 0.99, "agreement": 0.9, "coreference": 0.9}}  # fmt: skip


@pytest.mark.system(SLUG)
@pytest.mark.parametrize("task", lab.TASKS)
def test_the_answer_stands_at_the_source(task: str) -> None:
    x, y, source = texts(300, task, torch.Generator().manual_seed(0))
    there = x.gather(1, source[:, None]).squeeze(1)
    assert torch.equal(there - lab.FILLERS if task == "copy" else there, y)
    assert torch.isin(x[:, -1], torch.tensor(lab.TASKS[task])).all()
    if task == "coreference":
        assert torch.equal(x[:, -1] == lab.HE, y < lab.SHE_NAMES)


def near_and_far(task: str, seed: int) -> tuple[list[float], list[float], float]:
    """Accuracy of a head and of a recurrent net, near and far from the answer; the head's weight on the source."""
    x, y, source = texts(600, task, torch.Generator().manual_seed(seed + 50))
    head, recurrent = (train_model(kind, task, 170, seed) for kind in (Head, Recurrent))
    far = source < lab.LENGTH // 2
    with torch.no_grad():
        found = [(model(x).argmax(-1) == y).double() for model in (head, recurrent)]
        mass = mass_at(head.weights(x), source)
    one, other = ([float(right[at].mean()) for at in (~far, far)] for right in found)
    return one, other, float(mass.mean())


@pytest.mark.system(SLUG, "copy")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_head_learns_to_copy_at_any_distance(seed: int) -> None:
    head, recurrent, mass = near_and_far("copy", seed)
    assert min(head) > 0.95
    assert max(recurrent) < min(head) - 0.2
    assert mass > 0.9


@pytest.mark.system(SLUG, "agreement")
@pytest.mark.parametrize("task", ["agreement", "coreference"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_head_learns_to_agree_and_to_resolve_at_any_distance(task: str, seed: int) -> None:
    head, recurrent, mass = near_and_far(task, seed)
    assert min(head) > 0.95
    assert max(recurrent) < min(head) - 0.2
    assert mass > 0.7


@pytest.mark.system(SLUG)
def test_both_models_have_about_as_many_weights() -> None:
    head, recurrent = (sum(p.numel() for p in m.parameters() if p.dim() > 1) for m in (Head().head, Recurrent().rnn))
    assert abs(head / recurrent - 1) < 0.1


def test_verdict_and_figure() -> None:
    numbers = measure(seed=0, budget=0.1)
    assert verdict(numbers) == "open"
    json.dumps(numbers)
    assert verdict(GOOD) == "supported"
    assert verdict({**GOOD, "attention": [1.0, 0.8]}) == "refuted"
    assert verdict({**GOOD, "recurrent": [0.95, 0.9]}) == "refuted"
    assert verdict({**GOOD, "weight_on_source": {"copy": 0.5}}) == "refuted"
    assert len(figure(GOOD).axes) == 2
