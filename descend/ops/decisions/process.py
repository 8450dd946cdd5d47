"""A Markov decision process with finitely many states and actions, as the list of what can happen.

    (S, A, P(s'|s, a), R(s, a), γ)        γ in [0, 1);  1 is allowed where every policy that is evaluated ends

An outcome is one line of the list: in state s, action a leads with probability p to s', gives the reward r, and may end
the episode. The outcomes of each pair (s, a) stand together and their probabilities sum to 1, so

    P(s'|s, a) = Σ p,    R(s, a) = Σ p r        over the outcomes of (s, a)

Nothing follows an outcome that ends the episode: V(s') counts as 0 after it. A state that keeps to itself without a
reward, whatever is done, is an end, too: whoever comes there is done. A list has room for rewards that depend on s',
as gymnasium's tables and files have them; the R(s, a) of the book is their mean.

One convention for rewards: the reward that follows the action at t is r_t (S940 9.2); S940 9.1 calls the same number
R_{t+1}, so its G_t = Σ_k γ^k R_{t+k+1} is Σ_k γ^k r_{t+k} here.

Systems: mdp
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from descend.errors import Mistake

SLACK = 1e-6  # how far from 1 the probabilities of a pair may sum


@dataclass(frozen=True)
class ProcessNames:
    """What states and actions are called, and where they lie; empty: by their numbers."""

    states: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    grid: tuple[int, int] | None = None
    """Rows and columns, where state s is the cell in row s // columns and column s mod columns."""

    def state(self, s: int) -> str:
        return f"state {self.states[s] if self.states else s}"

    def action(self, a: int) -> str:
        return f"action {self.actions[a] if self.actions else a}"


@dataclass(frozen=True)
class DecisionProcess:
    """Outcomes of all pairs (s, a), sorted by pair; made and checked by `build_process`."""

    states: int
    actions: int
    gamma: float
    pair: Tensor
    """s·A + a of each outcome (m)."""
    following: Tensor
    """s' (m)"""
    probability: Tensor
    """p (m), float64."""
    reward: Tensor
    """r (m), float64."""
    ends: Tensor
    """Whether the episode ends with it (m)."""
    start: Tensor
    """The probability that an episode begins in a state (S)."""
    labels: ProcessNames = field(default_factory=ProcessNames)

    @cached_property
    def expected_reward(self) -> Tensor:
        """R(s, a) = Σ p r (S, A)."""
        return self.add_up(self.probability * self.reward)

    @cached_property
    def onward(self) -> Tensor:
        """p where the episode goes on, 0 where it ends (m)."""
        return self.probability.masked_fill(self.ends, 0.0)

    @cached_property
    def bounds(self) -> Tensor:
        """Where the outcomes of each pair begin, and the end of the last (S·A + 1)."""
        return torch.searchsorted(self.pair, torch.arange(self.states * self.actions + 1))

    @cached_property
    def cumulative(self) -> Tensor:
        """For pair k, the running sum of its probabilities, plus k (m): sorted over the whole list."""
        sums = self.probability.cumsum(0)
        before = torch.cat([sums.new_zeros(1), sums])[self.bounds[:-1]]
        return sums - before[self.pair] + self.pair

    def add_up(self, x: Tensor) -> Tensor:
        """Σ over the outcomes of each pair: (m) -> (S, A)."""
        return x.new_zeros(self.states * self.actions).index_add(0, self.pair, x).view(self.states, self.actions)

    def transitions(self) -> Tensor:
        """P(s'|s, a), ended or not (S, A, S)."""
        table = self.probability.new_zeros(self.states * self.actions, self.states)
        table.index_put_((self.pair, self.following), self.probability, accumulate=True)
        return table.view(self.states, self.actions, self.states)

    @property
    def state_names(self) -> list[str]:
        return list(self.labels.states) or [str(s) for s in range(self.states)]

    @property
    def action_names(self) -> list[str]:
        return list(self.labels.actions) or [str(a) for a in range(self.actions)]

    def discounted(self, gamma: float) -> DecisionProcess:
        """The same process with another γ."""
        return replace(self, gamma=require_gamma(gamma))

    def begun_in(self, states: Tensor) -> DecisionProcess:
        """The same process, begun in any of these states (S, true or false), each as likely: exploring starts."""
        return replace(self, start=states.double() / states.sum())


def require_gamma(gamma: float) -> float:
    if not 0 <= gamma <= 1:
        raise Mistake(f"gamma {gamma}: must be in [0, 1), or 1 where every episode ends")
    return float(gamma)


@dataclass(frozen=True)
class Outcomes:
    """The list as it is read: one entry for each outcome, in any order."""

    state: Sequence[int] | Tensor
    action: Sequence[int] | Tensor
    probability: Sequence[float] | Tensor
    following: Sequence[int] | Tensor
    reward: Sequence[float] | Tensor
    ends: Sequence[bool] | Tensor


def build_process(
    sizes: tuple[int, int], outcomes: Outcomes, gamma: float, start: Tensor, labels: ProcessNames | None = None
) -> DecisionProcess:
    """A process of (states, actions), checked: probabilities sum to 1, numbers are finite, no pair is left out."""
    states, actions = sizes
    labels = labels or ProcessNames()
    for name, given, size in (("states", labels.states, states), ("actions", labels.actions, actions)):
        if given and len(given) != size:
            raise Mistake(f"there are {len(given)} names of {name}, but {size} {name}")
    o, whole, real = outcomes, torch.long, torch.float64
    state, action, following = (torch.as_tensor(x, dtype=whole) for x in (o.state, o.action, o.following))
    probability, reward = (torch.as_tensor(x, dtype=real) for x in (o.probability, o.reward))
    ends = torch.as_tensor(o.ends, dtype=torch.bool)
    for name, x, size in (("state", state, states), ("action", action, actions), ("next state", following, states)):
        if wrong := x[(x < 0) | (x >= size)].tolist():
            raise Mistake(f"{name} {wrong[0]}: there are {size}, numbered from 0")
    _require_numbers(state, action, probability, reward, labels)
    pair = state * actions + action
    order = pair.argsort(stable=True)
    pair, following, probability, reward, ends = (x[order] for x in (pair, following, probability, reward, ends))
    total = probability.new_zeros(states * actions).index_add(0, pair, probability)
    for k in ((total - 1).abs() > SLACK).nonzero()[:1, 0].tolist():
        what = f"sum to {total[k]:.6g}, not 1" if total[k] else "are missing: give each action of the state an outcome"
        raise Mistake(f"{labels.state(k // actions)}, {labels.action(k % actions)}: the probabilities {what}")
    begin = torch.as_tensor(start, dtype=real)
    if begin.shape != (states,) or bool((begin < 0).any()) or not abs(float(begin.sum()) - 1) <= SLACK:
        raise Mistake(f"start: give a probability for each of the {states} states; they must sum to 1")
    stays = (following == pair // actions) & (reward == 0)
    leaves = torch.zeros(states, dtype=torch.bool).index_put((pair[~stays] // actions,), torch.tensor(True))
    probability = probability / total[pair]
    return DecisionProcess(
        states,
        actions,
        require_gamma(gamma),
        pair,
        following,
        probability,
        reward,
        ends | ~leaves[following],
        begin / begin.sum(),
        labels,
    )


def _require_numbers(state: Tensor, action: Tensor, probability: Tensor, reward: Tensor, labels: ProcessNames) -> None:
    for name, x, wrong in (
        ("probability", probability, ~((probability >= 0) & (probability <= 1 + SLACK))),
        ("reward", reward, ~reward.isfinite()),
    ):
        for i in wrong.nonzero()[:1, 0].tolist():
            must = "be from 0 to 1" if name == "probability" else "be a finite number"
            raise Mistake(f"{labels.state(int(state[i]))}, {labels.action(int(action[i]))}: {name} {x[i]} must {must}")


def process_from_arrays(
    transitions: Tensor, reward: Tensor, gamma: float, start: Tensor | None = None, labels: ProcessNames | None = None
) -> DecisionProcess:
    """P (S, A, S) and R (S, A), or R (S, A, S) where it depends on s', as the book writes them."""
    p = torch.as_tensor(transitions, dtype=torch.float64)
    if p.dim() != 3 or p.shape[0] != p.shape[2] or not p.numel():
        raise Mistake(f"P has shape {tuple(p.shape)}; it must be (states, actions, states)")
    states, actions = p.shape[:2]
    r = torch.as_tensor(reward, dtype=torch.float64)
    if r.shape not in (p.shape, p.shape[:2]):
        raise Mistake(f"R has shape {tuple(r.shape)}; it must be {tuple(p.shape[:2])} or {tuple(p.shape)}")
    r = r if r.dim() == 3 else r[..., None].expand_as(p)
    state, action, following = ((p != 0) | (r.isnan())).nonzero().unbind(1)
    at = state, action, following
    ends = torch.zeros(len(state), dtype=torch.bool)
    begin = torch.full((states,), 1 / states, dtype=torch.float64) if start is None else start
    outcomes = Outcomes(state, action, p[at], following, r[at], ends)
    return build_process((states, actions), outcomes, gamma, begin, labels)
