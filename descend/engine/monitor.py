"""Watching every step for spikes of the loss and of the gradient's norm, and what is done about one.

    tell        it is logged; training goes on
    skip        its step is not taken: weights and optimizer stay, the next batch comes
    rollback    weights, optimizer and average go back to the last checkpoint; step and data go on after the spike

What is usual is part of the state, so a resumed run finds the same spikes and does the same about them. A checkpoint
that was gone back to `MOST` times is not gone back to again: the spikes come from where it stands.

Systems: training-monitoring
"""

from __future__ import annotations

from typing import Any, NamedTuple

from descend.metrics.spikes import Series, Spike

ACTIONS = ("off", "tell", "skip", "rollback")
MOST = 3  # times that a run goes back to the same checkpoint
LOGGED = 50  # spikes that a run writes down
NEAR = 10  # steps after a spike in which another one is its echo, where nothing is done about it


class Spiked(Exception):
    """A step that is not to be taken; raised before the optimizer changes anything."""


class Seen(NamedTuple):
    """A spike of one curve of one player."""

    curve: str
    spike: Spike

    @property
    def said(self) -> str:
        what = self.curve.replace("grad_norm", "gradient norm").replace("_", " of ")
        return f"the {what} jumped to {self.spike.value:.4g} from about {self.spike.usual:.4g}"


class Monitor:
    """The curves of a run, by name: loss and grad_norm, or with several players loss_g, grad_norm_g, .."""

    def __init__(self, action: str):
        self.action = action
        self.series: dict[str, Series] = {}
        self.found: list[Seen] = []
        self.logged = 0
        self.back_to = -1  # the step of the checkpoint that was gone back to last, and how often
        self.times = 0
        self.last = -NEAR  # the step of the last spike

    def look(self, player: str, loss: float, norm: float) -> bool:
        """One more move: whether there is a spike."""
        if self.action == "off":
            return False
        before = len(self.found)
        for name, value in (("loss", loss), ("grad_norm", norm)):
            curve = f"{name}_{player}" if player else name
            series = self.series.setdefault(curve, Series(logarithm=name == "grad_norm"))
            if spike := series.observe(value):
                self.found.append(Seen(curve, spike))
        return len(self.found) > before

    def may_go_back(self, step: int) -> bool:
        """Whether a run may go back to the checkpoint of this step (once more)."""
        self.times = self.times + 1 if step == self.back_to else 1
        self.back_to = step
        return self.times <= MOST

    def report(self, step: int, done: str) -> list[dict[str, str]]:
        """What to log of this step: {"finding", "said"}."""
        found, self.found = self.found, []
        if self.action == "tell" and step - self.last < NEAR:
            found = []
        room = max(LOGGED - self.logged, 0)
        self.logged, self.last = self.logged + len(found), step
        return [{"finding": "spike", "said": f"step {step}: {one.said}; {done}"} for one in found[:room]]

    def state_dict(self) -> dict[str, Any]:
        curves = {name: list(series.values) for name, series in self.series.items()}
        counted = {"logged": self.logged, "last": self.last, "back_to": self.back_to, "times": self.times}
        return {"curves": curves, **counted}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.series = {}
        for name, values in state.get("curves", {}).items():
            self.series[name] = Series(logarithm=name.startswith("grad_norm"))
            self.series[name].values.extend(values)
        self.logged, self.last = state.get("logged", 0), state.get("last", -NEAR)
        self.back_to, self.times = state.get("back_to", -1), state.get("times", 0)
