"""PPO on tokens: a tiny language model whose every answer can be written down, a reward model and a reference."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cache

import pytest
import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.text.responses import Responses, respond
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.models.gpt2 import GPT2, GPT2Config
from descend.nn.value_head import TextScore, WithValues
from descend.optim.rules import Adam
from descend.optim.schedules import Constant
from descend.sampling.decoder import begin
from descend.tasks.language_policy import LanguagePolicy, ProximalTokens
from tests.close import close

VOCAB, LENGTH, STOP, BETA = 5, 3, 4, 0.3
PROMPTS = [[1], [2, 3]]
TINY = GPT2Config(vocab=VOCAB, context=8, width=16, depth=1, heads=2, dropout=0.0)


def list_answers() -> list[list[int]]:
    """Every answer: up to three tokens, and none after the stop token."""
    found, open_ones = [], [[]]  # type: ignore[var-annotated]
    while open_ones:
        past = open_ones.pop()
        for token in range(VOCAB):
            answer = [*past, token]
            (found if token == STOP or len(answer) == LENGTH else open_ones).append(answer)
    return found


ANSWERS = list_answers()


def lay_out(answers: Sequence[Sequence[int]], prompt: Sequence[int]) -> dict[str, Tensor]:
    """All of these answers to one prompt, as `respond` gives them."""
    tokens = torch.zeros(len(answers), len(prompt) + LENGTH, dtype=torch.long)
    written = torch.zeros_like(tokens, dtype=torch.bool)
    for i, answer in enumerate(answers):
        end = len(prompt) + len(answer)
        tokens[i, :end], written[i, len(prompt) : end] = torch.tensor([*prompt, *answer]), True
    return {"tokens": tokens, "written": written}


def log_chances(model: GPT2, prompt: Sequence[int]) -> Tensor:
    """log π(y|x) of every answer."""
    texts = lay_out(ANSWERS, prompt)
    log_p = model(texts["tokens"][:, :-1]).log_softmax(-1).gather(-1, texts["tokens"][:, 1:, None]).squeeze(-1)
    return (log_p * texts["written"][:, 1:]).sum(-1)


@cache
def reward_model() -> TextScore:
    """Learned from pairs: of two answers the one with more 3s is the better one (−log σ(R_better − R_worse))."""
    torch.manual_seed(1)
    model = TextScore(GPT2(TINY), TINY.width)
    both = [lay_out(ANSWERS, prompt) for prompt in PROMPTS]
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for step in range(60):
        texts = both[step % 2]
        count = ((texts["tokens"] == 3) & texts["written"]).sum(1)
        first, second = torch.randint(len(ANSWERS), (2, 256))
        found = model(texts["tokens"], texts["written"])
        sign, unequal = (count[first] - count[second]).sign(), count[first] != count[second]
        loss = -torch.nn.functional.logsigmoid(sign * (found[first] - found[second]))[unequal].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def make(seed: int, numbers: ProximalTokens) -> Training:
    torch.manual_seed(seed)
    model = GPT2(TINY)
    torch.nn.init.normal_(model.wte.weight, std=0.1)  # a reference with preferences of its own
    write = lambda prompts, chance: respond(model.decoder(), prompts, LENGTH, chance, (STOP,))
    held_out = lambda batch: write(PROMPTS * 16, 0)
    task = LanguagePolicy(
        WithValues(model, TINY.width), copy.deepcopy(model), copy.deepcopy(reward_model()), numbers, held_out
    )
    stream = Responses(PROMPTS, write, task.look_back, 64, seed)
    loop = Loop(seed=seed, precision="float32", compile="off", threads=1, clip=1.0)
    parts = Parts(task, model, stream, [{"ids": torch.arange(2)}], {"policy": Adam(5e-3)})
    return Training(parts, loop, Constant(), World())


@torch.no_grad()
def judge(model: GPT2, reference: GPT2) -> tuple[Tensor, Tensor, Tensor]:
    """Exactly, over both prompts: E[R], KL(π ‖ π_ref), and the largest E[R] − β KL that there is."""
    rewards, kls, best = [], [], []
    for prompt in PROMPTS:
        log_p, log_q = log_chances(model, prompt), log_chances(reference, prompt)
        texts = lay_out(ANSWERS, prompt)
        r = reward_model()(texts["tokens"], texts["written"])
        assert abs(float(log_p.exp().sum()) - 1) < 1e-5
        rewards.append(log_p.exp() @ r)
        kls.append(log_p.exp() @ (log_p - log_q))
        best.append(BETA * (log_q + r / BETA).logsumexp(0))
    return torch.stack(rewards).mean(), torch.stack(kls).mean(), torch.stack(best).mean()


@pytest.mark.system("ppo", "language-policy")
@pytest.mark.parametrize("seed", range(3))
def test_the_reward_improves_and_the_reference_is_not_left_behind(seed: int) -> None:
    """Closer to the best π ∝ π_ref e^{R/β} than to the start, in E[R] − β KL; R rises for both."""
    run = make(seed, ProximalTokens(beta=BETA))
    model, reference = run.parts.model, run.task.reference
    before, nothing, best = judge(model, reference)  # type: ignore[arg-type]
    assert float(nothing) == 0
    for _ in range(20):
        told = run.advance()
    reward, kl, _ = judge(model, reference)  # type: ignore[arg-type]
    assert reward > before + 5
    assert reward - BETA * kl > before + 0.8 * (best - before)
    assert kl < (best - before) / BETA
    assert told["reward"] == pytest.approx(float(reward), abs=1.0)
    assert told["kl"] == pytest.approx(float(kl), abs=0.6)
    scores = run.evaluate()
    assert scores["reward"] == pytest.approx(float(reward), abs=1.0)


@pytest.mark.system("ppo", "language-policy")
def test_a_dear_reference_is_left_less() -> None:
    divergences = []
    for beta in (0.05, 10.0):
        run = make(0, ProximalTokens(beta=beta))
        for _ in range(8):
            run.advance()
        divergences.append(judge(run.parts.model, run.task.reference)[1])  # type: ignore[arg-type]
    assert divergences[1] < 0.5 * divergences[0]


@pytest.mark.system("ppo", "policy-gradient")
def test_the_first_gradient_is_the_policy_gradient_of_the_tokens() -> None:
    """Rewards, advantages and the loss written out, token by token; texts of different lengths."""
    numbers = ProximalTokens(beta=0.4, gamma=0.9, lam=0.8, value=0.0)
    run = make(0, numbers)
    task, model = run.task, run.parts.model
    other = GPT2(TINY)
    task.reference.load_state_dict(other.state_dict())
    torch.nn.init.normal_(task.policy.value.read.weight)  # type: ignore[union-attr]
    texts = lay_out([[0, 3, 1], [4], [3, 4]], PROMPTS[1])
    policy, parameters = [], list(model.parameters())
    advantages = []
    for tokens, written in zip(texts["tokens"], texts["written"], strict=True):
        logits, value = task.policy(tokens[None, :-1])
        log_p = logits[0].log_softmax(-1)
        log_q = task.reference(tokens[None, :-1])[0].log_softmax(-1)
        places = [t for t in range(len(tokens) - 1) if written[t + 1]]
        following, row = 0.0, []
        for t in reversed(places):
            y, final = tokens[t + 1], t == places[-1]
            reward = -0.4 * (log_p[t, y] - log_q[t, y]).item()
            reward += float(task.reward(tokens[None], written[None])) if final else 0.0
            delta = reward + (0.0 if final else 0.9 * value[0, t + 1].item()) - value[0, t].item()
            following = delta + 0.9 * 0.8 * following
            row.append(following)
        policy += [log_p[t, tokens[t + 1]] for t in places]
        advantages += row[::-1]
    a = torch.tensor(advantages)
    batch = task.look_back(texts)
    close(batch["target"][batch["at"]] - task.policy(batch["x"])[1][batch["at"]], a)
    plain = -(((a - a.mean()) / (a.std() + 1e-8)) * torch.stack(policy)).mean()
    first = next(iter(task.moves({**batch, "ids": torch.arange(3)})))
    ours = torch.autograd.grad(first.value().terms["policy"], parameters)
    for mine, expected in zip(ours, torch.autograd.grad(plain, parameters), strict=True):
        close(mine, expected, loosen=5)  # float32 through a transformer


def test_texts_end_at_the_stop_token_and_repeat_by_their_seed() -> None:
    torch.manual_seed(0)
    model = GPT2(TINY)
    texts = respond(model.decoder(), PROMPTS * 20, LENGTH, 5, (STOP,))
    again = respond(model.decoder(), PROMPTS * 20, LENGTH, 5, (STOP,))
    assert all(torch.equal(texts[name], again[name]) for name in texts)
    for i, (tokens, written) in enumerate(zip(texts["tokens"], texts["written"], strict=True)):
        prompt, answer = PROMPTS[i % 2], tokens[written].tolist()
        assert tokens[: len(prompt)].tolist() == prompt
        assert answer in ANSWERS
    with torch.no_grad():  # and the first token has the model's own distribution
        p = begin(model.decoder(), PROMPTS[:1], 1).softmax(-1)[0]
    many = respond(model.decoder(), PROMPTS[:1] * 2000, 1, 0)["tokens"][:, 1]
    share = torch.bincount(many, minlength=VOCAB) / 2000
    assert ((share - p).abs() < 4 * (p * (1 - p) / 2000).sqrt()).all()


def test_the_stream_goes_on_where_it_stood() -> None:
    run = make(0, ProximalTokens())
    stream = run.parts.stream
    next(stream)
    state, batch = stream.state_dict(), next(stream)
    stream.load_state_dict(state)
    again: Batch = next(stream)
    assert all(torch.equal(batch[name], again[name]) for name in batch)
