"""Continuous batching: one thread owns the decoder, and requests join and leave between two of its steps.

    each turn     who has gone leaves · who waits joins, as places are free · up to `PIECE` tokens of prompts are read
                  · all who write take one step together · each draws its own next token

A step reads every weight once, however many rows there are, so 64 texts cost little more than a few. The text of a
request does not depend on the others: its logits are those of a decoder of its own, bit for bit (`nn.decoding.rows`),
and it draws from a generator of its own, as `sampling.generate.stream` does: it is what `descend generate` writes.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.nn.decoding.cached import PIECE
from descend.nn.decoding.rows import RowDecoder
from descend.sampling.filters import TokenSampler
from descend.sampling.generate import seen_in


class Likely(NamedTuple):
    """Log-probabilities: of the token that was drawn, and of the most probable ones."""

    drawn: float
    best: tuple[tuple[int, float], ...]


class Drawn(NamedTuple):
    """A token of a text; `last` says why it is the last one ("stop", "length"), "" while there are more."""

    token: int
    last: str = ""
    likely: Likely | None = None
    fault: str = ""
    """Why the text cannot go on; there is no token then."""


@dataclass(eq=False)
class Job:
    """A text to be written after a prompt."""

    prompt: Sequence[int]
    tokens: int
    sampler: TokenSampler
    seed: int
    end: tuple[int, ...] = ()
    best: int | None = None
    """How many of the most probable tokens are told with each; None: no log-probabilities at all."""
    gone: bool = False
    """Nobody waits for it any more."""


class Text:
    """A job in its row: the generator that it draws from, and what it has."""

    def __init__(self, job: Job, device: Any):
        self.job, self.left, self.last = job, job.tokens, 0
        self.generator = torch.Generator(device).manual_seed(job.seed)
        self.seen: Tensor | None = None

    def draw(self, logits: Tensor) -> Drawn:
        """The next token of logits (1, v)."""
        job = self.job
        if job.sampler.repetition != 1 and self.seen is None:
            self.seen = seen_in([job.prompt], logits)
        y = job.sampler.draw(logits, self.generator, self.seen)
        if self.seen is not None:
            self.seen = self.seen.scatter(1, y[:, None], True)
        self.last, self.left = int(y), self.left - 1
        reason = "stop" if self.last in job.end else "" if self.left else "length"
        return Drawn(self.last, reason, None if job.best is None else find_likely(logits[0], self.last, job.best))


class Full(Exception):
    """There is no room for another request to wait."""


Deliver = Callable[[list[tuple[Job, Drawn]]], None]


class Batcher:
    """`rows` texts at once, of at most `length` tokens each; `queue` more may wait. What is drawn is delivered by the
    writing thread, all tokens of a step in one call."""

    def __init__(self, decoder: Any, rows: int, length: int, queue: int, deliver: Deliver):
        self.decoder, self.count, self.length, self.queue, self.deliver = decoder, rows, length, queue, deliver
        self.rows = RowDecoder(decoder, rows, length)
        self.waiting: deque[Job] = deque()
        self.texts: dict[int, Text] = {}
        self.joining: deque[int] = deque()
        self.free = list(range(rows))[::-1]
        self.steps = self.drawn = 0
        self.closed = False
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self.work, name="decoding", daemon=True)

    # Called by other threads

    def start(self) -> None:
        self.thread.start()

    def submit(self, jobs: Sequence[Job]) -> None:
        """All of them, or none where not all of them find a place or may wait."""
        with self.changed:
            if len(self.waiting) + len(jobs) > self.queue + len(self.free):
                raise Full
            self.waiting.extend(jobs)
            self.changed.notify()

    def cancel(self, job: Job) -> None:
        """Nobody waits for it any more: its place is given to another before the next step."""
        with self.changed:
            job.gone = True
            if job in self.waiting:
                self.waiting.remove(job)
            self.changed.notify()

    def close(self) -> None:
        """End the thread after its step; what is being written is given up."""
        with self.changed:
            self.closed = True
            self.changed.notify()
        if self.thread.is_alive():
            self.thread.join()

    # The writing thread

    def work(self) -> None:
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting or self.texts or self.closed)
                if self.closed:
                    return
            found: list[tuple[Job, Drawn]] = []
            try:
                self.change_rows()
                self.take_turn(found)
            except Exception as error:  # ours: those who write are told, those who wait come next
                traceback.print_exc(file=sys.stderr)
                found += self.start_anew(f"{type(error).__name__} while the text was written; see the server's log")
            if found:
                self.deliver(found)

    def change_rows(self) -> None:
        """Who has gone leaves, and those who waited longest take the free places."""
        with self.changed:
            for row in [row for row, text in self.texts.items() if text.job.gone]:
                self.leave(row)
            self.admit()

    def admit(self) -> None:
        while self.waiting and self.free:
            job, row = self.waiting.popleft(), self.free.pop()
            self.texts[row] = Text(job, self.rows.device)
            self.rows.begin_join(row, job.prompt)
            self.joining.append(row)

    def leave(self, row: int) -> None:
        self.rows.leave(row)
        del self.texts[row]
        self.free.append(row)
        if row in self.joining:
            self.joining.remove(row)

    @torch.inference_mode()
    def take_turn(self, found: list[tuple[Job, Drawn]]) -> None:
        """Read a little of the prompts, then one step of all who write; what is drawn joins `found`."""
        budget = PIECE
        live = [row for row in self.texts if row not in self.joining]
        while self.joining and budget > 0:
            row = self.joining[0]
            budget -= self.rows.unread[row][0][0].shape[1]
            logits = self.rows.continue_join(row)
            if logits is not None:
                self.joining.popleft()
                found.append(self.draw(row, logits[None]))
        if not live:
            return
        logits = self.rows.step(live, torch.tensor([self.texts[row].last for row in live], device=self.rows.device))
        self.steps += 1
        for n, row in enumerate(live):
            found.append(self.draw(row, logits[n : n + 1]))

    def draw(self, row: int, logits: Tensor) -> tuple[Job, Drawn]:
        """The next token of a row, which leaves after its last one."""
        text = self.texts[row]
        try:
            found = text.draw(logits)
        except Mistake as mistake:
            found = Drawn(0, fault=str(mistake))
        self.drawn += 1
        if found.last or found.fault:
            with self.changed:
                self.leave(row)
        return text.job, found

    def start_anew(self, reason: str) -> list[tuple[Job, Drawn]]:
        """After a fault: no text that was being written goes on."""
        with self.changed:
            lost = [(text.job, Drawn(0, fault=reason)) for text in self.texts.values()]
            self.rows = RowDecoder(self.decoder, self.count, self.length)
            self.texts, self.free = {}, list(range(self.count))[::-1]
            self.joining.clear()
        return lost


def find_likely(logits: Tensor, token: int, best: int) -> Likely:
    """log p of the model itself, before temperature and filters."""
    z = logits.float().log_softmax(dim=-1)
    top = z.topk(min(best, len(z)))
    return Likely(float(z[token]), tuple(zip(top.indices.tolist(), top.values.tolist(), strict=True)))
