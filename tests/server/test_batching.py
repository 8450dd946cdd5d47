"""One thread writes for many: who joins, waits, leaves and fails, and that nobody's text depends on it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pytest
import torch
from torch import nn

from descend.models import model_class
from descend.sampling.filters import TokenSampler
from descend.sampling.generate import stream
from descend.server.batching import Batcher, Drawn, Full, Job
from tests.server.conftest import wait_for

WRITERS = ("llama", "gpt2", "mistral", "mixtral", "lstm_lm", "mamba", "deepseek_v2", "palm")


def make_decoder(name: str) -> Any:
    torch.manual_seed(0)
    model = model_class(name)(import_module(f"descend.models.{name}").TINY).eval()
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=0.2)
    return model.decoder()


@contextmanager
def batching(decoder: Any, rows: int, queue: int = 99, length: int = 16, started: bool = True) -> Iterator[Any]:
    """A batcher, and what it delivered for each job."""
    told: dict[Job, list[Drawn]] = defaultdict(list)

    def deliver(found: list[tuple[Job, Drawn]]) -> None:
        for job, drawn in found:
            told[job].append(drawn)

    batcher = Batcher(decoder, rows, length, queue, deliver)
    if started:
        batcher.start()
    try:
        yield batcher, told
    finally:
        batcher.close()


def ended(told: dict[Job, list[Drawn]], jobs: list[Job]) -> bool:
    return all(told[job] and (told[job][-1].last or told[job][-1].fault) for job in jobs)


def job(prompt: list[int], tokens: int = 5, seed: int = 0, **more: Any) -> Job:
    return Job(prompt, tokens, TokenSampler(more.pop("temperature", 1.0)), seed, **more)


@pytest.mark.parametrize("name", WRITERS)
def test_every_decoder_writes_what_it_writes_alone(name: str) -> None:
    """3 rows for 7 texts of different lengths: the tokens of `generate.stream`, each."""
    jobs = [job([3 + i, 4, 5][: 1 + i % 3], 2 + i, seed=i) for i in range(7)]
    with batching(make_decoder(name), 3) as (batcher, told):
        batcher.submit(jobs)
        wait_for(lambda: ended(told, jobs))
    for one in jobs:
        alone = stream(make_decoder(name), [one.prompt], one.tokens, one.sampler, one.seed)
        assert [drawn.token for drawn in told[one]] == [int(token) for token in alone]
        assert [drawn.last for drawn in told[one]] == [""] * (one.tokens - 1) + ["length"]


def test_an_end_token_ends_it() -> None:
    free, bound = job([3, 4], 14), job([3, 4], 14)
    with batching(make_decoder("llama"), 2) as (batcher, told):
        batcher.submit([free])
        wait_for(lambda: ended(told, [free]))
        bound.end = (told[free][3].token,)
        batcher.submit([bound])
        wait_for(lambda: ended(told, [bound]))
    tokens = [drawn.token for drawn in told[free]]
    assert [drawn.token for drawn in told[bound]] == tokens[: tokens.index(bound.end[0]) + 1]
    assert told[bound][-1].last == "stop"


def test_all_of_a_request_find_a_place_or_none() -> None:
    with batching(make_decoder("llama"), 2, queue=3, started=False) as (batcher, _):
        batcher.submit([job([3])] * 4)
        with pytest.raises(Full):
            batcher.submit([job([3])] * 2)
        assert len(batcher.waiting) == 4
        batcher.submit([job([3])])
        with pytest.raises(Full):
            batcher.submit([job([3])])


def test_who_leaves_the_queue_makes_room() -> None:
    with batching(make_decoder("llama"), 1, queue=0, started=False) as (batcher, _):
        first = job([3])
        batcher.submit([first])
        batcher.cancel(first)
        batcher.submit([job([4])])


def test_who_goes_while_he_is_written_for_frees_his_row() -> None:
    decoder = make_decoder("gpt2")
    reached, go_on = threading.Event(), threading.Event()
    with batching(decoder, 1) as (batcher, told):
        step = batcher.rows.step

        def wait(*given: Any) -> Any:
            reached.set()
            assert go_on.wait(10)
            return step(*given)

        batcher.rows.step = wait
        first, second = job([3], 12), job([4], 3)
        batcher.submit([first, second])
        assert reached.wait(10)
        batcher.cancel(first)
        go_on.set()
        wait_for(lambda: ended(told, [second]))
    assert len(told[first]) <= 2
    assert [drawn.token for drawn in told[second]] == [
        int(token) for token in stream(make_decoder("gpt2"), [[4]], 3, TokenSampler(1.0), 0)
    ]


def test_a_long_prompt_is_read_between_the_steps_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of 4 tokens, one a turn: the other row writes in between."""
    monkeypatch.setattr("descend.nn.decoding.cached.PIECE", 4)
    monkeypatch.setattr("descend.server.batching.PIECE", 4)
    short, long = job([3], 12), job([4] * 13, 3)
    order: list[Job] = []
    with batching(make_decoder("llama"), 2, started=False) as (batcher, told):
        deliver = batcher.deliver
        batcher.deliver = lambda found: (order.extend(one for one, _ in found), deliver(found))
        batcher.submit([short, long])
        batcher.start()
        wait_for(lambda: ended(told, [short, long]))
    assert order.index(long) == 3  # four pieces; the short one begins with the first and writes beside the others
    alone = stream(make_decoder("llama"), [long.prompt], 3, TokenSampler(1.0), 0)
    assert [drawn.token for drawn in told[long]] == [int(token) for token in alone]


def test_numbers_that_are_none_fail_one_text_only() -> None:
    decoder = make_decoder("llama")
    broken, sound = job([3], 9), job([4], 9)
    with batching(decoder, 2, started=False) as (batcher, told):
        step, turns = batcher.rows.step, [0]

        def spoil(rows: list[int], tokens: Any) -> Any:
            logits = step(rows, tokens).clone()
            turns[0] += 1
            if turns[0] == 3:
                logits[[batcher.texts[row].job for row in rows].index(broken)] = float("nan")
            return logits

        batcher.rows.step = spoil
        batcher.submit([broken, sound])
        batcher.start()
        wait_for(lambda: ended(told, [broken, sound]))
    assert "nan" in told[broken][-1].fault.lower()
    assert told[sound][-1].last == "length"


@pytest.mark.parametrize("part", ["step", "begin_join"])
def test_a_fault_of_ours_is_told_and_the_next_are_written(
    part: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    decoder = make_decoder("llama")
    lost, next_ = job([3], 9), job([4], 9)
    with batching(decoder, 1, started=False) as (batcher, told):

        def fail(*_: Any) -> Any:
            raise MemoryError

        monkeypatch.setattr(batcher.rows, part, fail)
        batcher.submit([lost, next_])
        batcher.start()
        wait_for(lambda: ended(told, [lost, next_]))
    assert told[lost][-1].fault == "MemoryError while the text was written; see the server's log"
    assert told[next_][-1].last == "length"
    assert "MemoryError" in capsys.readouterr().err


def test_the_likely_tokens_are_those_of_the_logits() -> None:
    asked = job([3, 4], 1, best=3, temperature=0.0)
    with batching(make_decoder("gpt2"), 1) as (batcher, told):
        batcher.submit([asked])
        wait_for(lambda: ended(told, [asked]))
    decoder = make_decoder("gpt2")
    z = decoder.start(torch.tensor([[3, 4]]), torch.zeros(1, dtype=torch.long), 4)[0].log_softmax(-1)
    (drawn,) = told[asked]
    assert drawn.likely is not None
    best = z.topk(3)
    assert [token for token, _ in drawn.likely.best] == best.indices.tolist()
    assert [p for _, p in drawn.likely.best] == best.values.tolist()
    assert drawn.likely.drawn == float(z[drawn.token])
