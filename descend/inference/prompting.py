"""A trained language model, asked by prompts alone: choices scored, steps asked for, several chains voted on.

    choose(writer, prompt, choices)                       log p of each choice, as a sum and per token
    think(writer, question)                               "Let's think step by step", then the answer: two stages
    agree(writer, prompt, n)                              n sampled chains and their vote

No weight changes: `engine.frozen.checksum` of the model is the same before and after.

Systems: in-context-learning, chain-of-thought, self-consistency
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from descend.inference.writer import Writer
from descend.sampling.choices import Scored, score_choices
from descend.sampling.filters import GREEDY, TokenSampler
from descend.sampling.votes import Vote, answer_consistently
from descend.text.reasoning import answer_in_two_stages, parse_answer


def choose(writer: Writer, prompt: str, choices: Sequence[str]) -> Scored:
    """What each choice is worth after the prompt; it begins with a space where the prompt does not end with one."""
    begun = writer.begin(prompt)
    with torch.inference_mode():
        return score_choices(begun.decoder, begun.ids, [writer.tokenizer.encode(choice) for choice in choices])


def continue_text(
    writer: Writer, tokens: int = 100, sampler: TokenSampler = GREEDY, seed: int = 0
) -> Callable[[str], str]:
    """prompt -> what the model writes after it, up to the next question."""
    return lambda prompt: "".join(writer.write(prompt, tokens, sampler, seed)).partition("\nQ:")[0]


def think(writer: Writer, question: str, tokens: int = 100) -> tuple[str, str | None]:
    """The steps that the model writes, and the answer that it then gives."""
    return answer_in_two_stages(question, continue_text(writer, tokens))


def agree(writer: Writer, prompt: str, n: int, tokens: int = 100, temperature: float = 0.7) -> tuple[Vote, list[str]]:
    """Sample n chains after a prompt, seeds 0 .. n − 1, and vote."""
    sampler = TokenSampler(temperature)
    return answer_consistently(lambda seed: continue_text(writer, tokens, sampler, seed)(prompt), parse_answer, n)
