"""Siamese networks, SimCLR, MoCo and PIRL: shared weights, mined negatives, queue, momentum and memory, exactly."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from descend.contracts import Batch, Task
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.losses.self_supervised import against_queue, nt_xent
from descend.models.contrastive_encoder import TINY, ContrastiveEncoder, JigsawEncoder
from descend.ops.mining import mine_all, mine_hardest, mine_semi_hard, mine_top
from descend.optim.rules import SGD
from descend.optim.schedules import Constant
from descend.tasks.joint_embedding import PIRL, MoCo, Siamese, SimCLR, TemporalSiamese
from tests.close import close
from tests.tasks.self_supervised_cases import Jigsaw, Projecting, views


class Steps:
    """Batches of other numbers each time."""

    def __init__(self, make: Callable[[int], Batch]):
        self.make, self.at = make, 0

    def __next__(self) -> Batch:
        self.at += 1
        return self.make(self.at)

    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.at = state["at"]


def numbered(step: int, n: int = 4) -> Batch:
    random = torch.Generator().manual_seed(step)
    x = torch.randn(n, 5, generator=random)
    noise, pieces = torch.rand(n, 3, generator=random), torch.randn(n, 2, 5, generator=random)
    row = torch.randperm(10, generator=random)[:n]
    return {"x1": x, "x2": x + 0.1, "ids": torch.arange(n).flip(0), "row": row, "noise": noise, "pieces": pieces}


def train(
    task: Task, model: Any, make: Callable[[int], Batch] = numbered, player: str = "model", rate: float = 0.1
) -> Training:
    loop = Loop(precision="float32", compile="off")
    return Training(Parts(task, model, Steps(make), (), {player: SGD(rate)}), loop, Constant(), World())


@pytest.mark.system("siamese-contrastive")
@pytest.mark.system("siamese-contrastive", "shared-weights")
def test_both_views_go_through_the_same_weights() -> None:
    torch.manual_seed(0)
    model, batch = Projecting().double(), {**views(), "ids": torch.arange(8)}
    [move] = list(Siamese(model, mine_all).moves(batch))
    move.value().total().backward()
    together = [p.grad.clone() for p in model.parameters()]
    other = copy.deepcopy(model)  # each branch with weights of its own: the gradients of both are summed
    model.zero_grad()
    other.zero_grad()
    codes = {"z1": model.project(batch["x1"]), "z2": other.project(batch["x2"]), "group": batch["ids"]}
    Siamese(model, mine_all).compare(codes).total().backward()
    for whole, one, two in zip(together, model.parameters(), other.parameters(), strict=True):
        close(whole, one.grad + two.grad)


@pytest.mark.system("siamese-contrastive")
@pytest.mark.system("hard-negative-mining", "in-training")
@pytest.mark.parametrize("mine", [mine_hardest, mine_top(2), mine_semi_hard(0.5), mine_all])
def test_only_mined_negatives_are_pushed(mine: Any) -> None:
    torch.manual_seed(0)
    z1, z2 = (torch.randn(6, 4, dtype=torch.float64, requires_grad=True) for _ in (1, 2))
    group = torch.tensor([0, 0, 1, 2, 3, 4])
    found = Siamese(Projecting(), mine, margin=-1.0).compare({"z1": z1, "z2": z2, "group": group})
    s = normalize(z1, dim=1) @ normalize(z2, dim=1).T
    chosen = mine(s.detach(), group[:, None] != group, s.diagonal().detach())
    pairs = [(i, int(j)) for i in range(6) for j in chosen[i] if j >= 0]
    assert all(group[i] != group[j] for i, j in pairs)
    close(found.terms["push"], torch.stack([(s[i, j] + 1).relu() for i, j in pairs]).mean())
    close(found.terms["pull"], (1 - s.diagonal()).mean())
    (gradient,) = torch.autograd.grad(found.terms["push"], z2)
    untouched = sorted(set(range(6)) - {j for _, j in pairs})
    assert gradient[untouched].abs().sum() == 0


@pytest.mark.system("siamese-contrastive")
def test_frames_within_the_window_are_no_negatives() -> None:
    task = TemporalSiamese(Projecting(), mine_all, window=2)
    codes = {"group": torch.tensor([0, 0, 0, 1]), "t1": torch.tensor([0, 3, 9, 0]), "t2": torch.tensor([1, 4, 8, 1])}
    expected = [[False, True, True, True], [False, False, True, True], [True, True, False, True], [True] * 3 + [False]]
    assert task.negatives(codes).tolist() == expected


@pytest.mark.system("simclr")
@pytest.mark.system("simclr", "whole-step")
def test_simclr_compares_all_views_of_a_step() -> None:
    """The loss of the whole batch is no mean of the parts' losses; the move hands the engine codes and comparison."""
    torch.manual_seed(0)
    task, batch = SimCLR(Projecting().double(), 0.3), {**views(), "ids": torch.arange(8)}
    [move] = list(task.moves(batch))
    codes = move.encode()
    close(move.compare(codes).total(), nt_xent(codes["z1"], codes["z2"], 0.3).mean())
    halves = [move.compare({k: c[i : i + 4] for k, c in codes.items()}).total() for i in (0, 4)]
    assert abs(float((sum(halves) / 2 - move.compare(codes).total()).detach())) > 0.1


@pytest.mark.system("moco")
@pytest.mark.system("moco", "fifo")
def test_the_queue_is_first_in_first_out() -> None:
    task = MoCo(Projecting(), queue=7, width=2)
    start = task.queue.clone()
    kept = list(start)
    for step in range(5):
        keys = torch.arange(3 * 2.0).view(3, 2) + 10 * step
        task.enqueue(keys)
        kept = kept[3:] + list(keys)
        oldest = int(task.oldest)
        assert torch.equal(task.queue.roll(-oldest, 0), torch.stack(kept)), step
    many = torch.randn(9, 2)
    task.enqueue(many)
    assert sorted(map(tuple, task.queue.tolist())) == sorted(map(tuple, many[-7:].tolist()))


@pytest.mark.system("moco")
@pytest.mark.system("moco", "momentum", "no-gradient", "state")
def test_key_encoder_and_queue_after_steps_and_after_a_resume() -> None:
    torch.manual_seed(0)
    model = Projecting()
    task = MoCo(model, queue=6, width=4, momentum=0.9, tau=0.2)
    run = train(task, model)
    for step in range(1, 4):
        slow = [p.clone() for p in task.keys.parameters()]
        queue, batch = task.queue.clone(), numbered(step)
        with torch.no_grad():
            keys = normalize(task.keys.project(batch["x2"]), dim=1)
            expected = against_queue(model.project(batch["x1"]), keys, queue, 0.2).mean()
        found = run.advance()
        assert found["loss"] == pytest.approx(float(expected), rel=1e-5)
        for old, now, new in zip(slow, task.keys.parameters(), model.parameters(), strict=True):
            assert torch.equal(now, old * 0.9 + 0.1 * new) or torch.allclose(now, old * 0.9 + 0.1 * new, atol=1e-8)
            assert now.grad is None
        last = (int(task.oldest) - torch.arange(1, 5)) % 6
        close(task.queue[last], keys)  # ids run backwards: the last of a step has the lowest id
    state = copy.deepcopy(run.state_dict())
    metrics = run.advance()
    torch.manual_seed(1)
    again = train(MoCo(other := Projecting(), queue=6, width=4, momentum=0.9, tau=0.2), other)
    again.load_state_dict(state)
    assert again.advance() == metrics
    for (key, a), b in zip(run.task.state_dict().items(), again.task.state_dict().values(), strict=True):
        assert torch.equal(a, b), key


@pytest.mark.system("pirl")
@pytest.mark.system("pirl", "memory")
def test_the_memory_moves_for_the_images_of_the_step_only() -> None:
    torch.manual_seed(0)
    model = Jigsaw()
    task = PIRL(model, images=10, width=4, momentum=0.5, tau=0.3)
    run = train(task, model)
    for step in (1, 2):
        before, batch = task.memory.clone(), numbered(step)
        with torch.no_grad():
            z = normalize(model.project(batch["x1"]), dim=1)
        run.advance()
        expected = before.clone()
        expected[batch["row"]] = normalize(0.5 * before[batch["row"]] + 0.5 * z, dim=1)
        close(task.memory, expected)
    close(task.memory.norm(dim=1), torch.ones(10))
    assert "memory" in task.state_dict()


@pytest.mark.system("pirl")
@pytest.mark.system("pirl", "negatives")
def test_negatives_are_all_others_equally_often() -> None:
    task = PIRL(Jigsaw(), images=5, width=4)
    u = torch.rand(3, 8000, generator=torch.Generator().manual_seed(0))
    found = task.others(torch.tensor([0, 2, 4]), u)
    for row, drawn in zip([0, 2, 4], found, strict=True):
        counts = drawn.bincount(minlength=5)
        assert counts[row] == 0
        assert (counts[torch.arange(5) != row] - 2000).abs().max() < 160  # four standard deviations


@pytest.mark.system("pirl", "noise-contrastive")
def test_both_heads_have_their_share() -> None:
    torch.manual_seed(0)
    parts = {}
    for share in (0.0, 0.25, 1.0):
        torch.manual_seed(0)
        task = PIRL(JigsawEncoder(TINY), images=10, width=6, share=share)
        random = torch.Generator().manual_seed(0)
        pieces, noise = torch.randn(4, 4, 2, 4, 4, generator=random), torch.rand(4, 3, generator=random)
        batch = {
            "x1": torch.randn(4, 2, 8, 8, generator=random),
            "pieces": pieces,
            "row": torch.arange(4),
            "noise": noise,
        }
        [move] = list(task.moves(batch))
        parts[share] = move.value().terms
    close(parts[0.25]["pieces"], 0.25 * parts[1.0]["pieces"])
    close(parts[0.25]["images"], 0.75 * parts[0.0]["images"])


@pytest.mark.parametrize("n", [2, 5])
def test_scores_name_what_is_watched_even_for_two_examples(n: int) -> None:
    torch.manual_seed(0)
    task = SimCLR(ContrastiveEncoder(TINY))
    x = torch.randn(n, *TINY.image)
    batch = {"x": x, "x1": x, "x2": x, "y": torch.arange(n) % 2, "known": torch.zeros(n, dtype=torch.bool)}
    found: dict[str, Tensor] = task.eval().score(batch)
    close(found["alignment"], torch.ones(n))
    assert {"probe", "knn", "spread", "rank"} <= set(task.judge({}, {name: found[name] for name in task.evidence}))
    assert isinstance(task.model, nn.Module)
