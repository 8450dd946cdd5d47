"""A study: many short runs of one recipe with different values, compared by their validation scores.

    DIR/study.json      what was asked: recipe, space, sampler, pruner
    DIR/journal.log     what happened: Optuna's journal (optuna.load_study opens it)
    DIR/trials/000/     a run like any other
    DIR/report.html     the page of the study

A trial is entered in the journal with its values before it starts, in one line; its run saves checkpoints. So a process
killed at any moment, or stopped by its budget, leaves at most one half-finished trial, and that one is continued from
its last checkpoint. The study ends with the same trials and scores as one that never stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from descend.engine.fit import Display, Result
from descend.errors import Mistake
from descend.kinds.recipe import Recipe
from descend.tuning.space import Dimension
from descend.tuning.suggest import Sampler, list_combinations, make_distribution, suggest

if TYPE_CHECKING:
    import optuna
    from optuna.pruners import BasePruner
    from optuna.trial import FrozenTrial

Pruner = Literal["median", "halving", "none"]
STATES = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed", "RUNNING": "half-finished"}


class Pruned(Exception):
    """Raised inside a run whose scores fall behind the others'."""


class OutOfTime(Exception):
    """Raised inside a run when the study's budget is spent."""


Train = Callable[[Recipe, Path, Display], Result]
"""Trains a recipe into a folder, or continues the run that is there, and shows it on the display."""


@dataclass(frozen=True)
class StudyPlan:
    """What a study searches and how."""

    dimensions: list[Dimension]
    sampler: Sampler
    pruner: Pruner
    watch: str
    seed: int
    steps: int

    @property
    def higher(self) -> bool:
        return self.watch.startswith("max")

    def trials(self, wanted: int) -> int:
        """How many trials there will be: as many as wanted (0: 30); a grid has an end (0: all of it)."""
        if self.sampler != "grid":
            return wanted or 30
        every = len(list_combinations(self.dimensions))
        return min(wanted or every, every)


class Study:
    """The journal of a folder, and `run`. The caller holds the folder's lock: the journal needs none of its own."""

    def __init__(self, folder: Path, plan: StudyPlan):
        import optuna
        from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock, JournalStorage

        class Held(JournalFileOpenLock):
            """A lock file would outlive a killed process and stop the next one for half a minute."""

            def acquire(self) -> bool:
                return True

            def release(self) -> None:
                pass

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.folder, self.plan = folder, plan
        path = folder / "journal.log"
        mend_journal(path)
        self.optuna: optuna.Study = optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(path), Held(str(path)))),
            study_name="study",
            direction="maximize" if plan.higher else "minimize",
            pruner=make_pruner(plan),
            sampler=optuna.samplers.RandomSampler(),  # never asked: `suggest` is
            load_if_exists=True,
        )

    def run(
        self,
        trials: int,
        make: Callable[[dict[str, Any]], Recipe],
        train: Train,
        show: Callable[[FrozenTrial], Display],
        report: Callable[[FrozenTrial], None],
        budget: float = 0.0,
    ) -> str:
        """Trials until there are enough, or until the time is up; returns finished, budget, SIGINT or SIGTERM.

        `make` turns values into a recipe, `show` gives the display of a trial, `report` hears of each that ended."""
        until = time.monotonic() + budget if budget else math.inf
        while True:
            trial = self.half_finished()
            if trial is None and len(self.optuna.trials) >= trials:
                return "finished"
            if time.monotonic() > until:
                return "budget"
            if trial is None:
                trial = self.begin()
            try:
                reason = self.attempt(trial, make, train, TrialWatch(self, trial, show(trial), until))
            except OutOfTime:
                return "budget"
            if reason.startswith("SIG"):
                return reason
            report(self.optuna.trials[trial.number])
            self.refuse_if_nothing_starts()

    def refuse_if_nothing_starts(self) -> None:
        """A mistake that is in every trial is reported at once, not thirty times."""
        trials = self.optuna.trials
        if len(trials) >= 3 and all(t.state.name == "FAIL" and not t.user_attrs.get("step") for t in trials):
            raise Mistake(f"no trial could start: {trials[-1].user_attrs.get('fault')}")

    def half_finished(self) -> FrozenTrial | None:
        """The trial that was running when the process ended."""
        found = [trial for trial in self.optuna.trials if not trial.state.is_finished()]
        return found[0] if found else None

    def begin(self) -> FrozenTrial:
        """Enter the next trial in the journal."""
        from optuna.trial import TrialState, create_trial

        plan = self.plan
        values = suggest(plan.sampler, plan.dimensions, plan.seed, self.optuna.trials, plan.higher)
        where = {d.name: make_distribution(d) for d in plan.dimensions}
        self.optuna.add_trial(create_trial(state=TrialState.RUNNING, params=values, distributions=where))
        return self.optuna.trials[-1]

    def attempt(
        self, trial: FrozenTrial, make: Callable[[dict[str, Any]], Recipe], train: Train, watch: TrialWatch
    ) -> str:
        """Run one trial to its end and write the end into the journal. Returns why the run ended."""
        from optuna.trial import TrialState

        n, began = trial.number, time.monotonic()
        noted: dict[str, Any] = {}
        score, state, reason = None, TrialState.FAIL, "failed"
        try:
            recipe = make(trial.params)
            watch.last = recipe.loop.steps
            result = train(recipe, self.trial_folder(n), watch)
            if (reason := result.reason).startswith("SIG"):
                return reason
            noted = {"step": result.step, "best_step": result.best_step, "seconds": round(result.seconds, 3)}
            if result.best is not None and math.isfinite(result.best):
                score, state = result.best, TrialState.COMPLETE
            else:
                noted["fault"] = f"the validation score is {result.best}"
        except Pruned:
            state, reason = TrialState.PRUNED, "pruned"
            noted = {"step": watch.step}
        except Mistake as mistake:
            noted = {"step": watch.step, "fault": str(mistake)}
        for name, value in {"seconds": round(time.monotonic() - began, 3), **noted}.items():
            watch.trial.set_user_attr(name, value)
        self.optuna.tell(n, score, state)
        return reason

    def trial_folder(self, n: int) -> Path:
        return self.folder / "trials" / f"{n:03d}"

    def best(self) -> FrozenTrial | None:
        """The complete trial with the best score; the first of equal ones."""
        complete = [t for t in self.optuna.trials if t.state.name == "COMPLETE" and t.value is not None]
        sign = -1 if self.plan.higher else 1
        return min(complete, key=lambda t: sign * (t.value or 0.0)) if complete else None

    def importance(self) -> dict[str, float]:
        """The share of the scores' variance that each flag explains (fANOVA over a random forest)."""
        from optuna.importance import FanovaImportanceEvaluator, get_param_importances

        complete = [t for t in self.optuna.trials if t.state.name == "COMPLETE"]
        if len(complete) < 4 or len({t.value for t in complete}) < 2:
            return {}
        found = get_param_importances(self.optuna, evaluator=FanovaImportanceEvaluator(seed=0))
        return {name: round(float(share), 4) for name, share in found.items() if math.isfinite(share)}

    def rows(self) -> list[dict[str, Any]]:
        """Every trial as JSON."""
        return [
            {
                "number": t.number,
                "state": STATES[t.state.name],
                "values": dict(t.params),
                "score": t.value if t.state.name in ("COMPLETE", "PRUNED") else None,
                "scores": [[step, value] for step, value in sorted(t.intermediate_values.items())],
                "run": str(self.trial_folder(t.number).relative_to(self.folder)),
                **t.user_attrs,
            }
            for t in self.optuna.trials
        ]


class TrialWatch:
    """The display of a trial's run: passes everything on, reports the scores, and stops the run when it must."""

    def __init__(self, study: Study, frozen: FrozenTrial, shown: Display, until: float):
        from optuna.trial import Trial

        self.trial = Trial(study.optuna, frozen._trial_id)
        self.heard = set(frozen.intermediate_values)
        self.shown, self.until = shown, until
        self.step = self.last = 0
        self.score = study.plan.watch.split()[1]

    def update(self, step: int, loss: float, rate: float, valid: dict[str, float] | None = None) -> None:
        self.step = step
        self.shown.update(step, loss, rate, valid)
        if valid is not None and self.score in valid:
            if step not in self.heard:  # a continued run repeats what it reported before it was stopped
                self.trial.report(valid[self.score], step)
            if max(self.heard, default=0) <= step < self.last and self.trial.should_prune():
                raise Pruned
        if time.monotonic() > self.until:
            raise OutOfTime

    def message(self, text: str) -> None:
        self.shown.message(text)


def make_pruner(plan: StudyPlan) -> BasePruner:
    """What stops a bad trial: worse than the median of the complete ones at the same step, or not in the best third."""
    from optuna.pruners import MedianPruner, NopPruner, SuccessiveHalvingPruner

    if plan.pruner == "median":
        return MedianPruner(n_startup_trials=4, n_warmup_steps=plan.steps // 5)
    if plan.pruner == "halving":
        return SuccessiveHalvingPruner(min_resource=max(1, plan.steps // 9), reduction_factor=3)
    return NopPruner()


def mend_journal(path: Path) -> None:
    """Cut off a last line that was not written to its end."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        with path.open("r+b") as file:
            file.truncate(len(whole))
