"""What to try next: trial n of a study, as a function of the space, the trials before it, the seed and n alone.

    grid     the n-th combination                                   (descend.classic.search.grid)
    random   the n-th draw                                          (descend.classic.search.draw)
    tpe      Optuna's TPESampler: densities of good and bad values  after STARTUP random trials
    gp       Optuna's GPSampler: Gaussian process and expected improvement (descend.classic.bayesian), likewise

No random state is carried from trial to trial, so a search that was killed continues as if it had not been.
Optuna's process looks at complete trials only, so it would propose a pruned point again and again. Here it is told the
score at which a trial was pruned, and the worst score of all for a trial that failed.
"""

from __future__ import annotations

import warnings
import zlib
from typing import TYPE_CHECKING, Any, Literal

from descend.classic.search import Choice, LogUniform, LogWhole, Uniform, Whole, draw, grid
from descend.errors import Mistake
from descend.tuning.space import Dimension, shorten

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

Sampler = Literal["grid", "random", "tpe", "gp"]
STARTUP = 6  # random trials before a model of the scores is trusted
LARGEST = 10_000  # combinations of a grid


def make_distribution(dimension: Dimension) -> BaseDistribution:
    """A dimension in Optuna's terms."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    prior = dimension.prior
    if isinstance(prior, Choice):
        return CategoricalDistribution(prior.values)
    if isinstance(prior, Whole | LogWhole):
        return IntDistribution(prior.low, prior.high, log=dimension.log)
    assert isinstance(prior, Uniform | LogUniform)
    return FloatDistribution(prior.low, prior.high, log=dimension.log)


def list_combinations(dimensions: list[Dimension]) -> list[dict[str, Any]]:
    """All that a grid tries."""
    lists = {d.name: d.list_values() for d in dimensions}
    count = 1
    for values in lists.values():
        count *= len(values)
    if count > LARGEST:
        raise Mistake(f"the grid has {count:,} combinations; list fewer values, or take --sampler random")
    return grid(lists)


def suggest(
    sampler: Sampler, dimensions: list[Dimension], seed: int, before: list[FrozenTrial], higher: bool
) -> dict[str, Any]:
    """The values of the next trial; `before` are the finished ones, `higher` says which scores are better."""
    n = len(before)
    if sampler == "grid":
        return list_combinations(dimensions)[n]
    if sampler == "random" or n < STARTUP:
        values = draw({d.name: d.prior for d in dimensions}, seed, n)
    else:
        values = suggest_by_model(sampler, dimensions, zlib.crc32(f"{seed}/{n}".encode()), before, higher)
    return {d.name: shorten(values[d.name], d.prior) for d in dimensions}


def suggest_by_model(
    sampler: Sampler, dimensions: list[Dimension], seed: int, before: list[FrozenTrial], higher: bool
) -> dict[str, Any]:
    """A suggestion of Optuna's, from a study in memory with the trials before."""
    import optuna

    study = optuna.create_study(direction="maximize" if higher else "minimize", sampler=make_sampler(sampler, seed))
    study.add_trials(take_scored(before, higher) if sampler == "gp" else [mark_bad(trial) for trial in before])
    asked = study.ask({d.name: make_distribution(d) for d in dimensions})
    return dict(asked.params)


def make_sampler(sampler: Sampler, seed: int) -> BaseSampler:
    """A sampler without a past."""
    from optuna.exceptions import ExperimentalWarning
    from optuna.samplers import GPSampler, TPESampler

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        if sampler == "gp":
            return GPSampler(seed=seed, n_startup_trials=0)
        return TPESampler(seed=seed, n_startup_trials=0, multivariate=True)


def mark_bad(trial: FrozenTrial) -> FrozenTrial:
    """A failed trial as one that was pruned before its first score, which is the worst there is; others as they are."""
    from optuna.trial import TrialState, create_trial

    if trial.state != TrialState.FAIL:
        return trial
    return create_trial(state=TrialState.PRUNED, params=trial.params, distributions=trial.distributions)


def take_scored(before: list[FrozenTrial], higher: bool) -> list[FrozenTrial]:
    """Every trial as a complete one: pruned ones with their last score, failed ones with the worst of all."""
    from optuna.trial import TrialState, create_trial

    known = [trial.value for trial in before if trial.value is not None and trial.state != TrialState.FAIL]
    if not known:
        return []
    worst = min(known) if higher else max(known)
    return [
        create_trial(
            params=trial.params,
            distributions=trial.distributions,
            value=trial.value if trial.value is not None and trial.state != TrialState.FAIL else worst,
        )
        for trial in before
    ]
