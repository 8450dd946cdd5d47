"""Classification as a task: one player, the mean cross-entropy, scores for each example."""

from __future__ import annotations

import torch
from sklearn.metrics import accuracy_score, f1_score
from torch import nn

from descend.engine.evaluation import score_set
from descend.tasks.classify import Classify
from descend.tasks.fine_tune import ClassifyText, TagTokens
from tests.close import close


def batch(n: int = 9) -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    return {"x": torch.randn(n, 4, generator=random), "y": torch.arange(n) % 3, "ids": torch.arange(n)}


def task() -> Classify:
    torch.manual_seed(0)
    return Classify(nn.Linear(4, 3))


def test_one_move_whose_closure_can_be_called_again() -> None:
    given, one = batch(), task()
    moves = list(one.moves(given))
    assert [move.player for move in moves] == ["model"]
    loss = moves[0].loss
    close(loss(), nn.functional.cross_entropy(one.model(given["x"]), given["y"]))
    before = loss()
    with torch.no_grad():
        one.model.weight.mul_(2)
    assert loss() != before  # evaluated anew, as a line search needs


def test_scores_are_for_each_example_so_any_batching_gives_one_mean() -> None:
    given, one = batch(), task()
    whole = one.score(given)
    assert whole["accuracy"].shape == whole["loss"].shape == (9,)
    parts = [one.score({name: v[i : i + 4] for name, v in given.items()}) for i in (0, 4, 8)]
    for name in whole:
        close(torch.cat([part[name] for part in parts]), whole[name])
    theirs = accuracy_score(given["y"], one.model(given["x"]).argmax(-1))
    close(whole["accuracy"].double().mean(), torch.tensor(theirs, dtype=torch.float64))


def test_f1_is_of_the_whole_set_however_it_is_cut() -> None:
    given, one = batch(40), task()
    theirs = f1_score(given["y"], one.model(given["x"]).argmax(-1), average="macro")
    for size in (40, 7, 1):
        cut = [{name: v[i : i + size] for name, v in given.items()} for i in range(0, 40, size)]
        scores = score_set(one, cut)
        assert set(scores) == {"accuracy", "loss", "f1"}
        close(scores["f1"], theirs)


class Pick(nn.Module):
    """x are the logits' classes: (..) -> (.., 3)"""

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return nn.functional.one_hot(x, 3).float()


def test_texts_and_tags_have_an_f1_too() -> None:
    said, y = torch.tensor([0, 1, 1, 2, 0]), torch.tensor([0, 1, 2, 2, 1])
    close(score_set(ClassifyText(Pick()), [{"x": said, "y": y}])["f1"], f1_score(y, said, average="macro"))
    tagged = {"x": said[None], "y": y[None], "at": torch.tensor([[True, True, True, True, False]])}
    close(score_set(TagTokens(Pick()), [tagged])["f1"], f1_score(y[:4], said[:4], average="macro"))


def test_a_rare_class_that_is_never_found_costs_half_of_f1() -> None:
    x, y = torch.zeros(100, dtype=torch.long), (torch.arange(100) == 0).long()
    scores = score_set(Classify(Pick()), [{"x": x, "y": y}])
    close(scores["accuracy"], 0.99)
    assert scores["f1"] < 0.5
