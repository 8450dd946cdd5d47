"""All that moves during a run: the players' weights and optimizers, the average, the data position, the step.

The heart is `play`: the task yields who moves and the loss as a closure; the optimizer calls it. Micro-batches
run their generators in lockstep, so that the summed gradient is that of the whole batch. The randomness of step n is a
function of seed, n and process, so no random state has to be saved and any resume repeats it.

Systems: training-loop
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from math import isfinite, isnan
from typing import Any

import torch
from torch import Tensor, nn

from descend.contracts import Batch, JointMove, Move, Schedule
from descend.engine.distributed import World, gather, replicate, scatter
from descend.engine.ema import Ema
from descend.engine.evaluation import score_set
from descend.engine.faults import NotFinite, find_spoilt, locate, locate_gradient
from descend.engine.fingerprint import Fingerprint, describe_software
from descend.engine.frozen import check_unchanged, checksums, select_trained
from descend.engine.gradients import Found, gradient
from descend.engine.hardware import find_device, move_batch, should_compile
from descend.engine.loop import Loop
from descend.engine.monitor import Monitor, Spiked
from descend.engine.parts import Parts
from descend.engine.precision import choose_precision, name_precision, widen_outputs
from descend.errors import Mistake
from descend.optim.clip import gradients, shrink
from descend.optim.schedules import Plateau, Watch


class Training:
    """A run in motion. `advance` takes one step; `state_dict` is everything that a bit-exact resume needs."""

    def __init__(self, parts: Parts, loop: Loop, schedule: Schedule, world: World):
        self.parts, self.loop, self.schedule, self.world = parts, loop, schedule, world
        self.device = find_device(loop.device)
        chosen = choose_precision(loop, parts, self.device)
        self.dtype = torch.float32 if world.any(chosen is torch.float32) else chosen
        self.task = parts.task.to(self.device).train()
        players = parts.task.players
        if set(players) != set(parts.optims):
            raise ValueError(f"the task's players are {players}, the optimizers are for {tuple(parts.optims)}")
        for name in players:
            getattr(self.task, name).register_forward_hook(widen_outputs)
        self.replicas = replicate(parts, world, loop.parallel)
        self.compute = self.replicas[players[0]].compute
        if should_compile(loop, self.device):
            for name in players:
                getattr(self.task, name).compile()
        self.optims = {name: parts.optims[name].build(getattr(self.task, name)) for name in players}
        self.trained = {name: list(self.replicas[name].module.parameters()) for name in players}
        self.base_lr = {name: [g["lr"] for g in opt.param_groups] for name, opt in self.optims.items()}
        self.others = {name: self._others(name) for name in players}
        self.ema = Ema(parts.model, loop.ema) if loop.ema else None
        self.frozen = checksums(self.task)
        self.monitor = Monitor(loop.spikes)
        self.fresh = False  # the closure is called for the first time in a move
        self.moved = self.goes_back = False  # what this step did: an optimizer moved; a rollback is asked for
        self.step = 0
        self.best: float | None = None
        self.best_step = self.waited = 0
        self.judged = 0  # the step of the last evaluation
        self.stopped = ""  # why it ended before its steps were done, where a resume could not tell: budget
        self.watch = Watch()
        self.seconds = 0.0

    def _others(self, player: str) -> list[nn.Parameter]:
        """The parameters to freeze while this player moves.

        None when sharded: FSDP fixes at the first gathering which parameters take gradients. The others' gradients are
        then computed too, and cleared when their own turn comes.
        """
        if self.world.size > 1 and self.loop.parallel == "fsdp":
            return []
        mine = set(getattr(self.task, player).parameters())
        return [p for p in self.task.parameters() if p.requires_grad and p not in mine]

    def advance(self) -> dict[str, float]:
        """One step: every move of one batch. Returns the mean loss of each player, and the gradient norm if clipped."""
        reseed(self.loop.seed, self.step, self.world.rank)
        factor = self.schedule(self.step, self.loop.steps) * self.watch.factor
        for name, opt in self.optims.items():
            for group, lr in zip(opt.param_groups, self.base_lr[name], strict=True):
                group["lr"] = lr * factor
        batches = self.compute(self.draw)
        self.moved = self.goes_back = False
        seen = self.play(batches)
        if self.ema and self.moved and not self.goes_back:
            self.ema.update(self.step + 1)
        self.step += 1
        return {name: sum(values) / len(values) for name, values in seen.items()}

    def draw(self) -> list[Batch]:
        """The micro-batches of the next step; where the data is what the model does, it does it here."""
        return [move_batch(next(self.parts.stream), self.device) for _ in range(self.loop.accumulate)]

    def play(self, batches: list[Batch]) -> dict[str, list[float]]:
        """The moves of the batches, in lockstep."""
        seen: dict[str, list[float]] = defaultdict(list)
        for turn in zip(*(self.parts.task.moves(batch) for batch in batches), strict=True):
            player = turn[0].player
            differentiate = gradient(turn, self.replicas[player], self.autocast)
            self.fresh = True
            with self.moving(player):
                try:
                    found = self.optims[player].step(lambda: self.closure(turn, differentiate, batches, seen))
                    self.moved = True
                except Spiked as spike:
                    found, self.goes_back = spike.args[0], self.loop.spikes == "rollback"
            seen["loss" if len(self.optims) == 1 else f"loss_{player}"].append(float(found))
            if self.goes_back:
                break
        return seen

    def closure(
        self,
        turn: Sequence[Move | JointMove],
        differentiate: Callable[[], Found],
        batches: list[Batch],
        seen: dict[str, list[float]],
    ) -> float:
        """Loss and gradients of one player's move; stops before a step that would spoil the weights."""
        player = turn[0].player
        self.optims[player].zero_grad(set_to_none=True)
        found = differentiate()
        if not isfinite(found.loss):
            where = self.compute(lambda: locate(self.task, turn[0]))
            raise NotFinite(f"the loss of {player!r} is {found.loss}", where, batches)
        grads, norm = gradients(self.trained[player])
        length = float(norm)
        if not isfinite(length):
            what = f"the gradient of {player!r} is not finite, though its loss is {found.loss:.4g}"
            raise NotFinite(what, locate_gradient(self.task, player), batches)
        if self.loop.clip:
            shrink(grads, norm, self.loop.clip)
            seen["grad_norm"].append(length)
        for name, value in found.to_metrics(player if len(self.optims) > 1 else "").items():
            seen[name].append(value)
        self.look_for_spike(player, found.loss, length)
        return found.loss

    def look_for_spike(self, player: str, loss: float, norm: float) -> None:
        """At the first evaluation of a move; raises where such a step is not to be taken. All processes agree."""
        fresh, self.fresh = self.fresh, False
        spiked = fresh and self.monitor.look(player if len(self.optims) > 1 else "", loss, norm)
        if fresh and self.loop.spikes in ("skip", "rollback") and self.world.any(spiked):
            raise Spiked(loss)

    @contextmanager
    def moving(self, player: str) -> Iterator[None]:
        """Inside, only this player's parameters take gradients."""
        others = self.others[player]
        for p in others:
            p.requires_grad_(False)
        try:
            yield
        finally:
            for p in others:
                p.requires_grad_(True)

    def autocast(self) -> Any:
        half = self.dtype is not torch.float32
        return torch.autocast(self.device.type, self.dtype) if half else nullcontext()

    @torch.no_grad()
    def evaluate(self) -> dict[str, float]:
        """The validation scores in float32, with the averaged weights if there are any; `raw` asks for both."""
        raw = {f"raw_{name}": value for name, value in self.score_valid().items()} if self.loop.raw else {}
        with self.ema.swap_in() if self.ema else nullcontext():
            return self.score_valid() | raw

    def score_valid(self) -> dict[str, float]:
        """The validation scores of the weights as they are."""
        valid = (move_batch(batch, self.device) for batch in self.parts.valid)
        replica = next(iter(self.replicas.values()))
        return self.world.agree(replica.evaluate(lambda: score_set(self.task, valid)))

    @torch.no_grad()
    def make_snapshot(self) -> Tensor | None:
        """The images to keep of this step, made with the averaged weights if there are any."""
        make = self.parts.snapshot
        if make is None:
            return None
        self.task.eval()
        try:
            with self.ema.swap_in() if self.ema else nullcontext():
                return next(iter(self.replicas.values())).evaluate(make)
        finally:
            self.task.train()

    def sum_losses(self, metrics: dict[str, float]) -> float:
        """The loss to show: of the one player, or the sum over all that moved."""
        if "loss" in metrics:
            return metrics["loss"]
        return sum(metrics.get(f"loss_{player}", 0.0) for player in self.optims)

    def judge(self, value: float, higher: bool) -> bool:
        """Whether this score is the best so far, by more than the margin; counts the evaluations since the best.

        NaN is worse than any number: a first one stands only until there is a number.
        """
        if self.best is None or isnan(self.best):
            improved = self.best is None or not isnan(value)
        else:
            improved = (value - self.best if higher else self.best - value) > self.loop.margin  # False for NaN
        self.judged = self.step
        self.waited = 0 if improved else self.waited + 1
        if improved:
            self.best, self.best_step = value, self.step
        # The evaluation at the end of a budget does not count towards a plateau: a longer run would not have had it.
        if isinstance(self.schedule, Plateau) and self.step % self.loop.eval_every == 0:
            self.watch = self.schedule.observe(self.watch, value, higher, self.loop.margin)
        return improved

    @property
    def ended(self) -> str:
        """Why there is nothing left to do: finished, patience or budget. Follows from the state, so a resume knows."""
        if self.step >= self.loop.steps:
            return "finished" if self.judged == self.step else ""
        if self.loop.patience and self.waited >= self.loop.patience:
            return "patience"
        return self.stopped

    def fingerprint(self, native: bool = False) -> Fingerprint | None:
        """What the run depends on besides its state; `native` says that it used compiled code before."""
        data = self.parts.fingerprint
        return (
            None if data is None else {**data, "environment": describe_software(self.world.size, native, self.device)}
        )

    def check_finite(self) -> None:
        """Refuse weights and moments that no checkpoint may hold: a step can overflow though its gradient did not."""
        spoilt = find_spoilt({**dict(self.task.named_parameters()), **self.moments()})
        if self.world.any(bool(spoilt)):
            where = f"it made {spoilt} infinite or NaN" if spoilt else "another process has an infinite or NaN weight"
            raise NotFinite("the step before was too long", where, [])

    def moments(self) -> dict[str, Tensor]:
        """What the optimizers keep for each parameter."""
        kept = {name: opt.state_dict()["state"] for name, opt in self.optims.items()}
        return {
            f"the optimizer's {k} of {name!r}, parameter {i},": v
            for name, state in kept.items()
            for i, values in state.items()
            for k, v in values.items()
            if isinstance(v, Tensor)
        }

    def weights(self) -> dict[str, Tensor]:
        """The state dict to publish: whole tensors, averaged if there is an average."""
        with self.ema.swap_in() if self.ema else nullcontext():
            state = gather(self.parts.model.state_dict())
            return {k: v.clone() for k, v in state.items()} if self.ema else state

    def state_dict(self) -> dict[str, Any]:
        """Everything a resume needs; all processes call it together."""
        return {
            "step": self.step,
            "best": self.best,
            "best_step": self.best_step,
            "waited": self.waited,
            "judged": self.judged,
            "stopped": self.stopped,
            "watch": asdict(self.watch),
            "monitor": self.monitor.state_dict(),
            "seconds": self.seconds,
            "precision": name_precision(self.dtype),
            "task": gather(select_trained(self.task)),
            "frozen": self.frozen,
            "optims": {name: gather(opt.state_dict()) for name, opt in self.optims.items()},
            "ema": gather(self.ema.state_dict()) if self.ema else None,
            "stream": self.parts.stream.state_dict(),
            "fingerprint": self.fingerprint(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in ("step", "best", "best_step", "waited", "seconds"):
            setattr(self, name, state[name])
        # Checkpoints of the last release do not say it: they were evaluated at their end unless nothing ever was.
        self.judged = state.get("judged", 0 if self.best is None else self.step)
        self.stopped = state.get("stopped", "")
        self.watch = Watch(**state.get("watch", {}))  # checkpoints from before the plateau have none
        if self.loop.precision == "auto":  # chosen when the run began, perhaps on another machine
            self.dtype = getattr(torch, state.get("precision", "float32"))
        check_unchanged(self.frozen, state.get("frozen", {}))
        self.monitor.load_state_dict(state.get("monitor", {}))  # earlier releases have none
        self.load_weights(state)
        self.parts.stream.load_state_dict(state["stream"])

    def load_weights(self, state: dict[str, Any]) -> None:
        """What the steps have made: weights, optimizers, average."""
        mine = select_trained(self.task)
        check_fit(mine, state["task"])
        with torch.no_grad():
            for name, tensor in mine.items():
                tensor.copy_(scatter(state["task"][name], tensor))
        for name, opt in self.optims.items():
            saved, trained = state["optims"][name], [p for g in opt.param_groups for p in g["params"]]
            for i, values in saved["state"].items():
                saved["state"][i] = {
                    k: scatter(v, trained[i]) if isinstance(v, Tensor) else v for k, v in values.items()
                }
            opt.load_state_dict(saved)
        if self.ema:
            shadow = zip(state["ema"]["shadow"], self.ema.shadow, strict=True)
            self.ema.load_state_dict({"shadow": [scatter(saved, mine) for saved, mine in shadow]})


def check_fit(mine: dict[str, Tensor], saved: dict[str, Tensor]) -> None:
    """Refuse a checkpoint of another model: another vocabulary, other classes or other inputs make one."""
    fix = "resume with the data that the run was started with, or start a new run"
    if names := sorted(mine.keys() ^ saved.keys()):
        raise Mistake(f"the checkpoint is of another model: only one of the two has {names[0]!r}; {fix}")
    for name, tensor in mine.items():
        if tensor.shape != saved[name].shape:
            old, new = ("×".join(map(str, shape)) for shape in (saved[name].shape, tensor.shape))
            raise Mistake(f"the checkpoint is of another model: {name!r} is {old} there and {new} now; {fix}")


def reseed(seed: int, step: int, rank: int) -> None:
    """Set torch's random state for a step. (torch's CPU generator takes 32 bits of a seed, so they are mixed first.)"""
    mixed = zlib.crc32(f"{seed}/{step}/{rank}".encode())
    torch.default_generator.manual_seed(mixed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed(mixed)
    if torch.backends.mps.is_available():
        torch.mps.manual_seed(mixed)
