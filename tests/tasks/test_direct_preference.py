"""DPO against trl, by its start, and on responses that can all be written down, where the best policy is known."""

from __future__ import annotations

import copy
from collections import defaultdict
from math import log
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from descend.engine.frozen import checksums, select_trained
from descend.models.gpt2 import GPT2
from descend.tasks.direct_preference import DirectPreference
from descend.theory.regularised_policy import best_policy, implied_reward, kl_to_reference
from tests.close import close
from tests.tasks.alignment_cases import TINY, responses
from tests.tasks.seven_answers import BETA, STRENGTH, lay_out, log_chances, make_language


def make(seed: int = 0) -> DirectPreference:
    model = make_language(seed)
    return DirectPreference(model, copy.deepcopy(model), BETA)


@pytest.mark.system("dpo")
@pytest.mark.system("dpo", "log-2")
@pytest.mark.system("dpo", "reference-frozen")
def test_it_starts_at_log_2_and_the_reference_never_moves() -> None:
    torch.manual_seed(0)
    batch, model = responses(2), GPT2(TINY).double()
    task = DirectPreference(model, copy.deepcopy(model), 0.3)
    found = task.loss(batch)
    assert float(found.total().detach()) == pytest.approx(log(2), abs=1e-12)
    assert float(found.told["accuracy"]) == 0.5
    before = checksums(task)
    assert set(before) == {"reference"}
    assert not [name for name in select_trained(task) if "reference" in name]
    optimizer = torch.optim.Adam(task.policy.parameters(), 1e-2)
    for _ in range(3):
        [move] = task.moves(batch)
        optimizer.zero_grad()
        move.value().total().backward()
        optimizer.step()
    assert checksums(task) == before
    told = task.loss(batch).told
    assert float(told["margin"]) > 0
    assert set(told) == {"margin", "accuracy", "chosen_reward", "rejected_reward", "chosen_length", "rejected_length"}
    assert float(told["chosen_length"]) == float(batch["written"][:, 0].sum(-1).double().mean())


@pytest.mark.system("dpo")
@pytest.mark.system("dpo", "converges")
@pytest.mark.system("kl-regularised-objective", "optimum")
@pytest.mark.parametrize("seed", range(3))
def test_it_comes_to_the_best_policy_of_the_rewards_that_made_the_pairs(seed: int) -> None:
    """Each pair of the seven answers four times, won as often as strengths of 1 and 3 say: r = log strength exactly."""
    task = make(seed)
    texts = lay_out()
    with torch.no_grad():
        best = best_policy(log_chances(task.reference), STRENGTH.log(), task.beta)
    wins = [
        (i, j)
        for i in range(7)
        for j in range(7)
        if i != j
        for _ in range(round(float(4 * STRENGTH[i] / (STRENGTH[i] + STRENGTH[j]))))
    ]
    rows = torch.tensor(wins)
    batch = {name: x[rows] for name, x in texts.items()}
    optimizer = torch.optim.Adam(task.policy.parameters(), 1e-2)
    plan = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 250)
    assert float(kl_to_reference(log_chances(task.policy), best).detach()) > 0.1
    for _ in range(250):
        optimizer.zero_grad()
        task.loss(batch).total().backward()
        optimizer.step()
        plan.step()
    with torch.no_grad():
        found = log_chances(task.policy)
        assert abs(float(found.exp().sum()) - 1) < 1e-5
        assert float(kl_to_reference(found, best)) < 1e-3
        implied = implied_reward(found, log_chances(task.reference), task.beta)
    assert float(((implied - implied[0]) - (STRENGTH / STRENGTH[0]).log()).abs().max()) < 0.05


@pytest.mark.system("dpo", "trl")
def test_loss_and_rewards_are_those_of_trl(tmp_path: Path) -> None:
    """DPOTrainer's own loss, with a trainer that holds only what it reads; alone, and with the chosen held fast."""
    trl = pytest.importorskip("trl")
    transformers = pytest.importorskip("transformers")
    from trl.trainer.utils import add_fused_lm_head

    torch.manual_seed(3)
    batch, models = responses(2), [GPT2(TINY), GPT2(TINY)]
    theirs = []
    for i, model in enumerate(models):
        nn.init.normal_(model.wte.weight, std=0.5)
        model.save_pretrained(tmp_path / str(i))
        theirs.append(transformers.AutoModelForCausalLM.from_pretrained(tmp_path / str(i)).eval())
        add_fused_lm_head(theirs[-1], outputs=("log_probs", "entropy", "mean_logits", "is_top1"))
    task = DirectPreference(*models, 0.4)  # type: ignore[arg-type]
    flat, written = (batch[name].transpose(0, 1).flatten(0, 1) for name in ("tokens", "written"))
    same = lambda x: x
    trainer = SimpleNamespace(
        model=theirs[0], ref_model=theirs[1], beta=0.4, label_smoothing=0.0, ld_alpha=None, loss_types=["sigmoid"],
        loss_weights=[1.0], f_divergence_type="reverse_kl", precompute_ref_logps=False, use_weighting=False,
        aux_loss_enabled=False, _metrics={"eval": defaultdict(list)}, _total_train_tokens=0, _tp_size=1,
        args=SimpleNamespace(gradient_checkpointing_kwargs=None),
        accelerator=SimpleNamespace(gather=same, gather_for_metrics=same, device="cpu", unwrap_model=same),
    )  # fmt: skip
    inputs = {"input_ids": flat, "attention_mask": (flat > 0).long(), "completion_mask": written.long()}
    loss = trl.DPOTrainer._compute_loss(trainer, theirs[0], inputs, False)
    trainer.loss_types, trainer.loss_weights = ["sigmoid", "sft"], [1.0, 0.7]
    held = trl.DPOTrainer._compute_loss(trainer, theirs[0], inputs, False)
    close(DirectPreference(*models, 0.4, anchor=0.7).loss(batch).total(), held, loosen=10)  # type: ignore[arg-type]
    assert float(held.detach()) > float(loss.detach()) + 0.1
    found = task.loss(batch)
    close(found.total(), loss, loosen=10)
    told = {name: values[0] for name, values in trainer._metrics["eval"].items()}
    for ours, name in {
        "chosen_reward": "rewards/chosen",
        "rejected_reward": "rewards/rejected",
        "accuracy": "rewards/accuracies",
        "margin": "rewards/margins",
    }.items():
        assert float(found.told[ours]) == pytest.approx(told[name], rel=1e-4)


def test_the_kl_is_that_of_what_the_policy_writes() -> None:
    task, texts = make(), lay_out()
    with torch.no_grad():
        for p in task.policy.parameters():
            p.add_(0.1 * torch.randn(p.shape))
        log_p, log_q = log_chances(task.policy), log_chances(task.reference)
    drawn = torch.multinomial(log_p.exp(), 4000, replacement=True)
    task.write = lambda batch: {name: x[drawn] for name, x in texts.items()}
    task.measure = lambda written: {"ones": written["written"].sum(-1).float() * 0 + 1}
    scores = task.score({"tokens": texts["tokens"][:1], "ids": torch.zeros(1)})
    assert float(scores["kl"].mean()) == pytest.approx(float(kl_to_reference(log_p, log_q)), abs=0.05)
    close(scores["kl"], (log_p - log_q)[drawn])
    assert scores["length"].tolist() == texts["written"].sum(-1)[drawn].tolist()
    assert scores["ones"].mean() == 1
