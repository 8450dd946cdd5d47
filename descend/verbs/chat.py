"""descend chat: talk with a language model that was taught by conversations."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from descend.errors import Mistake
from descend.inference.chatter import Chatter
from descend.own_code import use_code
from descend.sampling.filters import TokenSampler
from descend.sampling.stop import until


def chat(
    run: str | Path,
    messages: str | Sequence[Mapping[str, Any]],
    tokens: int = 200,
    temperature: float = 0.8,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition: float = 1.0,
    stop: tuple[str, ...] = (),
    seed: int = 0,
    checkpoint: str | int = "best",
) -> str:
    """The assistant's answer to a question, or to a conversation: [{"role": "user", "content": ..}, ..].

    Args:
        run: a run's folder, or a model folder with a tokenizer.json and a chat template.
        messages: a question, or all messages so far; the oldest are left out where they do not fit into the context.
        tokens: how many tokens to write at most.
        temperature: 0 takes the most likely token each time, 1 samples from the model's own distribution.
        top_k: only the k most likely tokens; 0: all.
        top_p: nucleus sampling: only the most likely tokens that together exceed this probability; 1: all.
        min_p: only tokens at least this fraction as likely as the most likely one; 0: all.
        repetition: penalty on tokens that the text already has; 1: none, 1.2 is usual.
        stop: end before the first of these texts.
        seed: of the random choices.
        checkpoint: best, last or a step.
    """
    chatter = Chatter.open(run, checkpoint)
    given = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    sampler = TokenSampler(temperature, top_k, top_p, min_p, repetition)
    return "".join(reply(chatter, given, tokens, sampler, stop, seed))


def reply(
    chatter: Chatter,
    messages: Sequence[Mapping[str, Any]],
    tokens: int,
    sampler: TokenSampler,
    stop: tuple[str, ...],
    seed: int,
) -> Iterator[str]:
    """The answer as it comes; what was left out of the conversation is said on stderr."""
    prompt = chatter.prepare(messages, tokens)
    if prompt.dropped:
        told = f"the oldest {prompt.dropped} messages do not fit into the context of {chatter.context} tokens any more"
        print(f"{told}, and were left out", file=sys.stderr)
    yield from until(chatter.answer(prompt, sampler, seed), stop)


def command(
    run: str,
    /,
    *,
    once: str = "",
    system: str = "",
    tokens: int = 200,
    temperature: float = 0.8,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition: float = 1.0,
    stop: tuple[str, ...] = (),
    seed: int = 0,
    checkpoint: str = "best",
    code: str = "",
) -> None:
    """Talk with a run or a model folder that has a chat template: a line is a message, and the conversation goes on.

    Args:
        run: a run's folder, or a model folder.
        once: one question; without it, each line of the standard input is a message.
        system: what the assistant is told before the conversation.
        tokens: how many tokens an answer has at most.
        temperature: 0 takes the most likely token each time, 1 samples from the model's own distribution.
        top_k: only the k most likely tokens; 0: all.
        top_p: nucleus sampling: only the most likely tokens that together exceed this probability; 1: all.
        min_p: only tokens at least this fraction as likely as the most likely one; 0: all.
        repetition: penalty on tokens that the text already has; 1: none, 1.2 is usual.
        stop: end an answer before the first of these texts.
        seed: of the random choices.
        checkpoint: best, last or a step.
        code: the file of a recipe or model of your own, where it is not found by its name.

    Examples:
        descend chat runs/assistant
        descend chat runs/assistant --once "Reverse abc." --temperature 0
        descend chat runs/assistant --system "You are terse." < questions.txt
    """
    use_code(code)
    chatter, sampler = Chatter.open(run, checkpoint), TokenSampler(temperature, top_k, top_p, min_p, repetition)
    history: list[dict[str, str]] = [{"role": "system", "content": system}] if system else []
    for question in [once] if once else read_lines():
        asked = [*history, {"role": "user", "content": question}]
        answer = ""
        try:
            for piece in reply(chatter, asked, tokens, sampler, stop, seed):
                sys.stdout.write(piece)
                sys.stdout.flush()
                answer += piece
        except Mistake as mistake:
            if once:
                raise
            print(f"descend: {mistake}", file=sys.stderr)  # the conversation goes on without this message
            continue
        print()
        history = [*asked, {"role": "assistant", "content": answer}]


def read_lines() -> Iterator[str]:
    """The lines of the standard input that are not empty, asked for where somebody types them."""
    typed = sys.stdin.isatty()
    while True:
        if typed:
            print("> ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.strip()
