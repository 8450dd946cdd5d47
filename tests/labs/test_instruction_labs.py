"""The pieces of the labs of prompting, fine-tuning and corpora: their data and judges, and that they run through."""

from __future__ import annotations

import random

import pytest
import torch

from descend.labs import clean_corpus, in_context_shots, open_lab, pretrained_start, reasoning_steps
from descend.labs._relative_reader import RelativeReader

NAMES = ("in-context-shots", "reasoning-steps", "pretrained-start", "clean-corpus")


@pytest.mark.parametrize("name", NAMES)
def test_too_small_a_budget_is_said(name: str) -> None:
    lab = open_lab(name)
    assert lab.needs({"steps": lab.LEAST - 1}) == lab.BUDGET
    assert lab.needs({"steps": lab.LEAST}) == 0
    assert lab.PRICE * lab.BUDGET >= lab.LEAST


@pytest.mark.parametrize("name", ["in-context-shots", "reasoning-steps"])
def test_a_lab_runs_through_and_draws_its_figure(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = open_lab(name)
    for constant, small in {"ASKED": 8, "LEAKED": 8, "PROBED": 3}.items():
        monkeypatch.setattr(lab, constant, small, raising=False)
    numbers = lab.measure(0, 0.05)
    found = lab.effects(numbers)
    assert {p.effect for p in (*lab.PREDICTIONS, *lab.CONTROLS)} == found.keys()
    assert lab.figure(numbers).axes


def test_mappings_are_permutations_and_none_is_in_both_parts() -> None:
    known, unseen = in_context_shots.list_mappings()
    rows = torch.cat([known, unseen])
    assert len(unseen) == 4000
    assert len(rows.unique(dim=0)) == len(rows) == 40320
    assert torch.equal(rows[:50].sort(1).values, torch.arange(8).expand(50, 8))


def test_prompts_hold_k_different_shots_and_a_letter() -> None:
    known, _ = in_context_shots.list_mappings()
    text, digit = in_context_shots.prompts(known[:200], 5, torch.Generator().manual_seed(0))
    letters, digits, asked = text[:, :-1:2], text[:, 1::2], text[:, -1]
    assert all(len(set(row)) == 5 for row in letters.tolist())
    assert torch.equal(digits - 8, known[:200].gather(1, letters))
    assert torch.equal(digit - 8, known[:200].gather(1, asked[:, None])[:, 0])


def test_a_perfect_reader_copies_or_guesses_among_what_is_left() -> None:
    chance = random.Random(0)
    for k in (0, 3, 7, 8):
        right = 0
        for _ in range(1500):
            f, shots, asked = chance.sample(range(8), 8), chance.sample(range(8), k), chance.randrange(8)
            left = [y for y in range(8) if y not in [f[x] for x in shots]]
            right += f[asked] == (f[asked] if asked in shots else chance.choice(left))
        assert right / 1500 == pytest.approx(in_context_shots.perfect(k), abs=0.05)


def test_chains_hold_the_running_sums() -> None:
    digits, chance = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]]), torch.Generator()
    steps = reasoning_steps.write_text(digits, "steps", chance)[0].tolist()
    assert steps == [3, 1, 4, 1, 5, 9, 2, 6, 10, 3, 4, 8, 9, 4, 3, 5, 1, 11, 1]
    assert reasoning_steps.write_text(digits, "direct", chance)[0].tolist() == [*steps[:9], 11, 1]
    assert reasoning_steps.write_text(digits, "filler", chance)[0, -1] == 3


class Adder(RelativeReader):
    """Writes what it should: a chain goes on from its last sum; so a disturbed one is followed."""

    def write(self, tokens, count, temperature=0.0, random=None):  # type: ignore[no-untyped-def]
        rows = []
        for row in tokens.tolist():
            digits, chain = row[: reasoning_steps.N], row[reasoning_steps.N + 1 :]
            for d in digits[len(chain) :]:
                chain.append(((chain[-1] if chain else 0) + d) % 10)
            rows.append([*chain, 11, chain[-1]][-count:])
        return torch.tensor(rows)


def test_the_judges_know_who_computes_by_steps() -> None:
    adder, chance = Adder(12, 8, 1, 1, 2), torch.Generator().manual_seed(0)
    digits = torch.randint(10, (20, reasoning_steps.N), generator=chance)
    assert bool(reasoning_steps.accuracy(adder, "steps", digits, chance).all())
    assert reasoning_steps.judge_chains(adder, "steps", digits, chance) == 1
    assert reasoning_steps.judge_votes(adder, digits, chance) == (1.0, 1.0)


def test_a_reader_writes_what_it_finds_likeliest() -> None:
    torch.manual_seed(0)
    model, text = RelativeReader(5, 8, 1, 2, 3), torch.tensor([[1, 2, 3]])
    written = model.write(text, 3)
    for k in range(3):
        assert int(written[0, k]) == int(model(torch.cat([text, written[:, :k]], 1))[0, -1].argmax())
    drawn = [model.write(text, 6, 5.0, torch.Generator().manual_seed(s)).tolist() for s in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_the_filter_takes_copies_and_noise_and_leaves_one_of_each_paragraph() -> None:
    chance = random.Random(0)
    words = [a + b for a in ("ban", "kel", "lim", "mor") for b in ("dor", "fil", "gat", "hem")]
    paragraphs = [" ".join(chance.choices(words, k=50)) + "." for _ in range(24)]
    raw = clean_corpus.crawl(paragraphs, chance)
    assert len(raw) == 24 + 6 * clean_corpus.COPIES + 24
    left, taken, stayed = clean_corpus.prepare(raw)
    assert (len(left), taken, stayed) == (24, 1.0, 1.0)


def test_effects_of_starts_are_their_gains() -> None:
    numbers = {"fine-tuned": [3.0, 2.5, 2.0], "scratch": [4.0, 3.0, 2.1]}
    found = pretrained_start.effects(numbers)
    assert found == {"least data": 1.0, "always": pytest.approx(0.1), "falls": pytest.approx(0.9)}
