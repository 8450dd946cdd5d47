"""The study: what is tried, pruned, failed and remembered, with a pretended training."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest

from descend import recipes
from descend.engine.fit import Display, Result
from descend.engine.progress import Quiet
from descend.errors import Mistake
from descend.tuning.space import read_space
from descend.tuning.study import Study, StudyPlan, mend_journal
from descend.tuning.suggest import STARTUP, mark_bad, suggest

LENET = recipes.get("lenet-digits")
ASKED = ["optim.lr=1e-4..1:log", "batch=16,32,64"]


def plan(sampler: Any = "random", pruner: Any = "none", watch: str = "min loss", asked: list[str] = ASKED) -> StudyPlan:
    return StudyPlan(read_space(asked, LENET), sampler, pruner, watch, seed=3, steps=10)


class Pretend:
    """Trains nothing: the score falls from evaluation to evaluation towards (log₁₀ lr + 2)² + batch/100."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.seen: list[dict[str, Any]] = []
        self.before: Callable[[int, int], None] = lambda trial, step: None
        self.steps = 5

    def make(self, values: dict[str, Any]) -> Any:
        self.values = values
        return replace(LENET, loop=replace(LENET.loop, steps=2 * self.steps))

    def train(self, recipe: Any, folder: Path, display: Display) -> Result:
        self.seen.append(self.values)
        aim = (math.log10(self.values["optim.lr"]) + 2) ** 2 + self.values["batch"] / 100
        for step in range(1, self.steps + 1):
            self.before(int(folder.name), step)
            display.update(2 * step, loss=1.0, rate=1.0, valid={"loss": aim + 1 / step})
        return Result("finished", 10, aim + 1 / self.steps, 10, 0.1)

    def run(self, study: Study, trials: int, budget: float = 0.0) -> str:
        return study.run(trials, self.make, self.train, lambda trial: Quiet(), lambda trial: None, budget)


def outcome(study: Study) -> list[tuple[Any, ...]]:
    return [(r["state"], r["values"], r["score"], r["scores"]) for r in study.rows()]


@pytest.mark.system("grid-and-random-search")
def test_a_grid_is_tried_once_and_ends(tmp_path: Path) -> None:
    grid = plan("grid", asked=["optim.lr=1e-3,1e-2", "batch=16,32,64"])
    study, work = Study(tmp_path, grid), Pretend()
    assert grid.trials(0) == grid.trials(100) == 6
    assert grid.trials(4) == 4
    assert work.run(study, grid.trials(0)) == "finished"
    assert len({tuple(v.values()) for v in work.seen}) == len(work.seen) == 6
    best = study.best()
    assert best is not None
    assert best.params == {"optim.lr": 1e-2, "batch": 16}
    with pytest.raises(Mistake, match="15,625 combinations"):
        plan(
            "grid",
            asked=["optim.lr=0..1", "optim.weight-decay=0..1", "clip=0..1", "ema=0..1", "batch=1..9", "seed=1..9"],
        ).trials(0)


@pytest.mark.parametrize("sampler", ["random", "tpe", "gp"])
def test_interrupted_anywhere_it_ends_the_same(sampler: Any, tmp_path: Path) -> None:
    """The process ends in the middle of trials 2 and 7; the next one continues that trial."""
    (tmp_path / "whole").mkdir()
    (tmp_path / "cut").mkdir()
    whole = Study(tmp_path / "whole", plan(sampler))
    Pretend().run(whole, 8)
    for at in ((2, 3), (7, 1)):
        work = Pretend()

        def stop(trial: int, step: int, at: tuple[int, int] = at) -> None:
            if (trial, step) == at:
                raise KeyboardInterrupt

        work.before = stop
        with pytest.raises(KeyboardInterrupt):
            work.run(Study(tmp_path / "cut", plan(sampler)), 8)
        assert Study(tmp_path / "cut", plan(sampler)).rows()[-1]["state"] == "half-finished"
    cut = Study(tmp_path / "cut", plan(sampler))
    assert Pretend().run(cut, 8) == "finished"
    assert outcome(cut) == outcome(whole)
    assert len(cut.rows()) == 8


@pytest.mark.system("bayesian-optimization")
def test_models_look_closer_than_chance(tmp_path: Path) -> None:
    found = {}
    for sampler in ("random", "tpe", "gp"):
        (tmp_path / sampler).mkdir()
        study = Study(tmp_path / sampler, plan(sampler))
        Pretend().run(study, 12)
        found[sampler] = [r["score"] for r in study.rows()]
    assert found["gp"][:STARTUP] == found["random"][:STARTUP] == found["tpe"][:STARTUP]
    late = {sampler: sum(scores[-6:]) / 6 for sampler, scores in found.items()}
    assert late["gp"] < 0.5 * late["random"]
    assert late["tpe"] < late["random"]
    assert min(found["gp"]) < min(found["random"])


def test_bad_trials_are_pruned_but_not_at_their_end(tmp_path: Path) -> None:
    for kind in ("median", "halving"):
        (tmp_path / kind).mkdir()
        study, work = Study(tmp_path / kind, plan(pruner=kind)), Pretend()
        work.run(study, 12)
        rows = study.rows()
        pruned = [r for r in rows if r["state"] == "pruned"]
        assert pruned
        assert all(r["step"] < 10 for r in pruned)
        assert all(r["score"] == r["scores"][-1][1] for r in pruned)
        best = study.best()
        assert best is not None
        assert all(min(v for _, v in r["scores"]) > (best.value or 0) for r in pruned)
    rows = study.rows()
    assert {r["state"] for r in rows} == {"complete", "pruned"}


def test_failed_trials_are_remembered_as_bad(tmp_path: Path) -> None:
    """More than half of the space fails: the process must not come back to it again and again."""
    study, work = Study(tmp_path, plan("gp")), Pretend()

    def fail(trial: int, step: int) -> None:
        if work.values["optim.lr"] > 3e-3 and step == 2:
            raise Mistake("step 3: the loss is nan")

    work.before = fail
    work.run(study, 11)
    rows = study.rows()
    failed = [r["state"] == "failed" for r in rows]
    first = rows[failed.index(True)]
    assert (first["fault"], first["score"]) == ("step 3: the loss is nan", None)
    assert sum(failed[STARTUP:]) <= 2
    best = study.best()
    assert best is not None
    assert best.params["optim.lr"] <= 3e-3
    bad = mark_bad(study.optuna.trials[first["number"]])
    assert bad.state == optuna.trial.TrialState.PRUNED  # what the density estimator counts among the worst
    assert not bad.intermediate_values


def test_a_mistake_in_every_trial_is_told_at_once(tmp_path: Path) -> None:
    study, work = Study(tmp_path, plan()), Pretend()

    def fail(trial: int, step: int) -> None:
        raise Mistake("there is no file x")

    work.before = fail
    with pytest.raises(Mistake, match="no trial could start: there is no file x"):
        work.run(study, 30)
    assert len(study.rows()) == 3


def test_a_score_that_is_no_number_is_a_failure(tmp_path: Path) -> None:
    study = Study(tmp_path, plan())
    ended = Result("finished", 10, math.nan, 10, 0.1)
    study.run(1, lambda v: LENET, lambda r, f, d: ended, lambda t: Quiet(), lambda t: None)
    assert study.rows()[0]["state"] == "failed"
    assert study.best() is None
    assert study.importance() == {}


def test_signals_and_budgets_leave_the_trial_to_be_continued(tmp_path: Path) -> None:
    study, work = Study(tmp_path, plan()), Pretend()
    stopped = Result("SIGINT", 4, None, 0, 0.1)
    assert study.run(3, work.make, lambda r, f, d: stopped, lambda t: Quiet(), lambda t: None) == "SIGINT"
    assert study.rows()[0]["state"] == "half-finished"
    assert work.run(study, 3, budget=1e-9) == "budget"
    assert work.run(study, 3) == "finished"
    assert [r["state"] for r in study.rows()] == ["complete"] * 3
    assert work.run(study, 3) == "finished"
    assert len(study.rows()) == 3


def test_a_torn_line_is_cut_off(tmp_path: Path) -> None:
    study = Study(tmp_path, plan())
    Pretend().run(study, 2)
    before = outcome(study)
    path = tmp_path / "journal.log"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"op_code":4,"wor')
    mend_journal(path)
    assert path.read_bytes() == whole
    path.write_bytes(whole + b'{"op_code":4,"wor')
    again = Study(tmp_path, plan())
    assert outcome(again) == before
    Pretend().run(again, 4)
    assert len(Study(tmp_path, plan()).rows()) == 4


def test_optuna_opens_the_journal(tmp_path: Path) -> None:
    Pretend().run(Study(tmp_path, plan()), 5)
    from optuna.storages.journal import JournalFileBackend, JournalStorage

    storage = JournalStorage(JournalFileBackend(str(tmp_path / "journal.log")))
    assert len(optuna.load_study(study_name="study", storage=storage).trials) == 5


def test_importance_sees_what_counts(tmp_path: Path) -> None:
    study = Study(tmp_path, plan())
    Pretend().run(study, 16)
    shares = study.importance()
    assert sum(shares.values()) == pytest.approx(1, abs=1e-3)
    assert shares["optim.lr"] > 0.7


def test_a_suggestion_depends_on_seed_and_history_only() -> None:
    dims = read_space(ASKED, LENET)
    assert suggest("random", dims, 0, [], True) == suggest("tpe", dims, 0, [], False)
    assert suggest("random", dims, 0, [], True) != suggest("random", dims, 1, [], True)
    assert (
        float(f"{suggest('random', dims, 0, [], True)['optim.lr']:.4g}")
        == suggest("random", dims, 0, [], True)["optim.lr"]
    )
