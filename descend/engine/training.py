"""All that moves during a run: the players' weights and optimizers, the average, the data position, the step.

The heart is `play`: the task yields who moves and the loss as a closure; the optimizer calls it. Micro-batches
run their generators in lockstep, so that the summed gradient is that of the whole batch. The randomness of step n is a
function of seed, n and process, so no random state has to be saved and any resume repeats it.

Systems: training-loop, gradient-accumulation
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from descend.engine.distributed import World, gather, scatter, spread, syncing
from descend.engine.ema import Ema
from descend.engine.faults import NotFinite, example_ids, locate
from descend.engine.hardware import compiles, device, moved, precision
from descend.engine.protocol import Batch, Loop, Parts, Schedule
from descend.optim.clip import clip_norm
from descend.optim.schedules import Plateau, Watch


class Training:
    """A run in motion. `advance` takes one step; `state_dict` is everything that a bit-exact resume needs."""

    def __init__(self, parts: Parts, loop: Loop, schedule: Schedule, world: World):
        self.parts, self.loop, self.schedule, self.world = parts, loop, schedule, world
        self.device = device()
        self.dtype = precision(loop, self.device)
        self.task: nn.Module = parts.task.to(self.device).train()
        players = parts.task.players
        if set(players) != set(parts.optims):
            raise ValueError(f"the task's players are {players}, the optimizers are for {tuple(parts.optims)}")
        if world.size > 1:
            spread(self.task, players, loop.parallel)
        if compiles(loop, self.device):
            for name in players:
                getattr(self.task, name).compile()
        self.optims = {name: parts.optims[name].build(getattr(self.task, name)) for name in players}
        self.base_lr = {name: [g["lr"] for g in opt.param_groups] for name, opt in self.optims.items()}
        self.others = {name: self._others(name) for name in players}
        self.ema = Ema(parts.model, loop.ema) if loop.ema else None
        self.step = 0
        self.best: float | None = None
        self.best_step = self.waited = 0
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
        batches = [moved(next(self.parts.stream), self.device) for _ in range(self.loop.accumulate)]
        seen = self.play(batches)
        if self.ema:
            self.ema.update()
        self.step += 1
        return {name: sum(values) / len(values) for name, values in seen.items()}

    def play(self, batches: list[Batch]) -> dict[str, list[float]]:
        """The moves of the batches, in lockstep."""
        seen: dict[str, list[float]] = defaultdict(list)
        for turn in zip(*(self.parts.task.moves(batch) for batch in batches), strict=True):
            player, loss_fns = turn[0][0], [loss_fn for _, loss_fn in turn]
            with self.moving(player):
                loss = self.optims[player].step(lambda: self.closure(player, loss_fns, batches, seen))
            seen["loss" if len(self.optims) == 1 else f"loss_{player}"].append(float(loss))
        return seen

    def closure(
        self,
        player: str,
        loss_fns: list[Callable[[], Tensor]],
        batches: list[Batch],
        seen: dict[str, list[float]],
    ) -> float:
        """Loss and gradients of one player's move; stops before a step that would spoil the weights."""
        module, total = getattr(self.task, player), torch.zeros((), device=self.device)
        self.optims[player].zero_grad(set_to_none=True)
        for i, loss_fn in enumerate(loss_fns):
            with syncing(module, i == len(loss_fns) - 1) if self.world.size > 1 else nullcontext():
                with self.autocast():
                    loss = loss_fn() / len(loss_fns)
                loss.backward()
            total = total + loss.detach()
        value = float(self.world.mean(total))
        if not abs(value) < float("inf"):  # also refuses NaN
            raise NotFinite(player, value, locate(self.task, loss_fns[0]), example_ids(batches))
        if self.loop.clip:
            seen["grad_norm"].append(float(clip_norm(module.parameters(), self.loop.clip)))
        return value

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
        """Mean validation scores, with the averaged weights if there are any."""
        with self.ema.applied() if self.ema else nullcontext(), self.autocast():
            return mean_scores(self.task, (moved(batch, self.device) for batch in self.parts.valid))

    def judge(self, value: float, higher: bool) -> bool:
        """Whether this score is the best so far, by more than the margin; counts the evaluations since the best."""
        improved = self.best is None or (value - self.best if higher else self.best - value) > self.loop.margin
        self.waited = 0 if improved else self.waited + 1
        if improved:
            self.best, self.best_step = value, self.step
        # The evaluation that ends a run on a budget is none of the plateau's: a run that goes on would not have had it.
        if isinstance(self.schedule, Plateau) and self.step % self.loop.eval_every == 0:
            self.watch = self.schedule.seen(self.watch, value, higher, self.loop.margin)
        return improved

    def weights(self) -> dict[str, Tensor]:
        """The state dict to publish: whole tensors, averaged if there is an average."""
        with self.ema.applied() if self.ema else nullcontext():
            state = gather(self.parts.model.state_dict())
            return {k: v.clone() for k, v in state.items()} if self.ema else state

    def state_dict(self) -> dict[str, Any]:
        """Everything a resume needs; all processes call it together."""
        return {
            "step": self.step,
            "best": self.best,
            "best_step": self.best_step,
            "waited": self.waited,
            "watch": asdict(self.watch),
            "seconds": self.seconds,
            "task": gather(plain(self.task.state_dict())),
            "optims": {name: gather(opt.state_dict()) for name, opt in self.optims.items()},
            "ema": gather(self.ema.state_dict()) if self.ema else None,
            "stream": self.parts.stream.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in ("step", "best", "best_step", "waited", "seconds"):
            setattr(self, name, state[name])
        self.watch = Watch(**state.get("watch", {}))  # checkpoints from before the plateau have none
        mine = plain(self.task.state_dict())
        if mine.keys() != state["task"].keys():
            raise ValueError(f"the checkpoint's tensors differ: {sorted(mine.keys() ^ state['task'].keys())[:4]}")
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
        self.parts.stream.load_state_dict(state["stream"])


def reseed(seed: int, step: int, rank: int) -> None:
    """Set torch's random state for a step. (torch's CPU generator takes 32 bits of a seed, so they are mixed first.)"""
    mixed = zlib.crc32(f"{seed}/{step}/{rank}".encode())
    torch.default_generator.manual_seed(mixed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed(mixed)


def plain(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """State dict keys without the wrapper's prefix, the same alone and under DDP."""
    return {name.replace(".module.", "."): tensor for name, tensor in state.items()}


def mean_scores(task: Any, batches: Any) -> dict[str, float]:
    """Mean of the task's per-example scores over all batches, in evaluation mode; and what `derive` makes of them."""
    totals: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    training = task.training
    task.eval()
    for batch in batches:
        for name, values in task.score(batch).items():
            totals[name] += values.double().sum().item()
            counts[name] += values.numel()
    task.train(training)
    means = {name: totals[name] / counts[name] for name in totals}
    derive = getattr(task, "derive", None)
    return derive(means) if derive and means else means
