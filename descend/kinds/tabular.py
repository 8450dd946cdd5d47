"""Tabular control: learn a table Q(s, a) by Q-learning, in a process with finitely many states.

Steps are drawn from the process's own table of outcomes, many walks at once; the learner sees the steps only. Because
the table is there, Q* is known (policy iteration), and every evaluation says how far from it the learned Q is, over the
states that an episode can come to. Evaluation plays whole episodes greedily from the process's own start.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from torch import Tensor

from descend.classic.dynamic_programming import iterate_policies
from descend.classic.q_learning import Experience
from descend.contracts import Batch
from descend.data.control.environments import TEST, VALID, Episodes
from descend.data.control.replay import Explore
from descend.data.control.table_arena import TableArena
from descend.data.control.tables import read_env, read_process
from descend.data.streams import shards
from descend.data.streams.sliced import Sliced
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.recipe import Recipe
from descend.models.q_table import QTable, QTableConfig
from descend.ops.decisions.bellman import reachable
from descend.ops.decisions.process import DecisionProcess
from descend.ops.decisions.rates import StepSize
from descend.optim.rules import SGD
from descend.optim.schedules import Constant
from descend.ranges import Count, Share, Whole
from descend.tasks.q_learning import QLearning
from descend.views.tabular import show_learning, show_values

LIMIT = 1000  # steps of an episode where nothing else says


@dataclass(frozen=True)
class Tables:
    """The process, and the episodes in it."""

    env: str = "FrozenLake-v1"
    """A gymnasium environment with a table of transitions: FrozenLake-v1, CliffWalking-v1, Taxi-v4."""
    path: str = ""
    """A decision process of your own instead: outcomes (.csv), P and R (.json), or a map of cells (.txt)."""
    start: Literal["own", "anywhere"] = "own"
    """Where training episodes begin: as the process says, or in any state (exploring starts)."""
    longest: Whole = 0
    """Steps after which an episode is cut off; 0: the environment's own limit, or 1,000."""
    valid: Count = 100
    """Episodes of an evaluation during training."""
    test: Count = 1000
    """Episodes of the final test."""

    def read(self, gamma: float) -> tuple[DecisionProcess, int]:
        """The process, and the steps after which an episode is cut off."""
        found, own = (read_process(self.path, gamma), 0) if self.path else read_env(self.env, gamma)
        return found, self.longest or own or LIMIT


@dataclass(frozen=True)
class TabularQ(Recipe):
    """Q-learning with a table; --batch is the number of walks side by side."""

    model: QTableConfig = field(default_factory=QTableConfig)
    data: Tables = field(default_factory=Tables)
    optim: Any = field(default_factory=lambda: SGD(lr=1.0, momentum=0.0))
    schedule: Any = field(default_factory=Constant)
    explore: Explore = field(default_factory=lambda: Explore(warmup=0))
    rate: StepSize = field(default_factory=StepSize)
    gamma: Share = 0.99
    """Discount; 1 only where every episode can end."""
    package: ClassVar[str] = "gymnasium"

    def build(self) -> Parts:
        loop, data = self.loop, self.data
        if loop.batch < 1:
            raise Mistake("--batch 0: steps have no end, so say how many walks go side by side")
        process, limit = data.read(self.gamma)
        rank, world = shards.process()
        if world > 1 and loop.parallel == "fsdp":
            raise Mistake("--parallel fsdp: the walks need the whole table between the steps; use --parallel ddp")
        seen, best = reachable(process), iterate_policies(process)
        model = QTable(replace(self.model, observations=process.states, actions=process.actions))
        task = QLearning(model, self.gamma, TableArena(process, limit), lambda q: measure_distance(q, best.q, seen))
        walked = process.begun_in(seen) if data.start == "anywhere" else process
        stream = Experience(walked, task.values, self.epsilon, self.rate, loop.batch, limit, loop.seed)
        return Parts(
            task=task,
            model=model,
            stream=Sliced(stream, loop.batch, loop.accumulate, rank, world),
            valid=Episodes(VALID, data.valid),
            optims={"q": self.optim},
            unit="environment steps",
            units_per_batch=loop.batch,
            facts={
                "process": data.path or data.env,
                "states": process.states,
                "states an episode can come to": int(seen.sum()),
                "actions": process.actions,
                "walks": loop.batch,
                "steps of an episode at most": limit,
                "value of the best policy": round(float((process.start * best.v).sum()), 6),
            },
            exhibits=lambda: [show_learning(stream.finished, loop.batch), *show_values(process, model.values)],
        )

    def epsilon(self, steps: int) -> float:
        """ε after this many environment steps; 1 during the warm-up."""
        return 1.0 if steps < self.explore.warmup else self.explore(steps)

    def test(self) -> Iterable[Batch]:
        """The episodes of the final test."""
        return Episodes(TEST, self.data.test)


def measure_distance(q: Tensor, best: Tensor, seen: Tensor) -> float:
    """max |Q − Q*| over the states that an episode can come to."""
    return float((q.detach().cpu().double() - best)[seen].abs().max())
