"""Pre-train once, adapt to many tasks: a small foundation model against models that begin from nothing.

    corpus       sentences of a toy language without labels: runs of letters that go round one of four circles, which
                 differ in step (+1, +2, +3, +5 of 23 letters), with some letters mistaken
    pre-train    min − Σ log p(x_{t+1} | x_≤t)                     self-supervised, next letter
    task A       which circle is it? (4 labels)                    SENTENCE ? A -> label
    task B       which letter comes next?                          SENTENCE ? B -> letter
    adapt        the same network fine-tuned on a few labelled examples of each task
    scratch      the same examples, the same steps, random weights
    base         the pre-trained network, asked without fine-tuning: it has never seen a question
    reward only  from random weights, sampling answers and reinforcing the right ones (REINFORCE), the same steps

DLD 11: reinforcement from scratch meets random behaviour and rare reward; DLN, MF 19.3.4: fine-tuned beats scratch
at few labels. One model serves both tasks: the word after the sentence says which is meant.

Systems: foundation-model-pipeline
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.labs._training import train
from descend.losses.classification import cross_entropy
from descend.losses.language import causal_lm_loss
from descend.models.gpt2 import GPT2, GPT2Config

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLAIM = (
    "A model pre-trained on unlabelled text and fine-tuned on a few labelled examples beats the same model trained on"
    " these alone, on each of two tasks; unadapted it does not follow the questions; by reward alone nothing is learned"
    " in the same number of steps."
)
LETTERS, STEPS = 23, (1, 2, 3, 5)
ASK = LETTERS  # two words: which task
LABELS = ASK + 2
VOCAB = LABELS + len(STEPS)
LENGTH, EXAMPLES, BATCH, NOISE = 16, 96, 32, 0.05
TASKS = ("circle", "next")
PRICE = 25  # steps that a second of one core buys; twice as many of pre-training, half of each way to adapt


def sentences(n: int, length: int, random: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Letters (n, length), the circle of each (n), and the letter that comes next (n)."""
    circle = torch.randint(len(STEPS), (n,), generator=random)
    start = torch.randint(LETTERS, (n, 1), generator=random)
    right = (start + torch.tensor(STEPS)[circle][:, None] * torch.arange(length + 1)) % LETTERS
    wrong = torch.rand(n, length, generator=random) < NOISE
    wrong[:, -2:] = False
    letters = torch.where(wrong, torch.randint(LETTERS, (n, length), generator=random), right[:, :-1])
    return letters, circle, right[:, -1]


def examples(n: int, random: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """x (n, length + 1), a sentence and the word that asks; the answers (n); which task it is (n)."""
    letters, circle, following = sentences(n, LENGTH, random)
    task = torch.arange(n) % 2
    x = torch.cat([letters, ASK + task[:, None]], dim=1)
    return x, torch.where(task == 0, LABELS + circle, following), task


def new_model(seed: int) -> GPT2:
    """48 wide, two blocks."""
    torch.manual_seed(seed)
    return GPT2(GPT2Config(vocab=VOCAB, context=LENGTH + 1, width=48, depth=2, heads=4, dropout=0.0))


def pretrain(model: GPT2, steps: int, seed: int) -> list[float]:
    """Next letters, without labels."""
    random = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        x = sentences(BATCH, LENGTH + 1, random)[0]
        return causal_lm_loss(model(x[:, :-1]), x[:, 1:])

    return train(model, loss, steps, 3e-3)


def fine_tune(model: GPT2, x: Tensor, y: Tensor, steps: int, seed: int) -> None:
    """The answers to the labelled examples, drawn again and again."""
    random = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        rows = torch.randint(len(x), (BATCH,), generator=random)
        return cross_entropy(model(x[rows])[:, -1], y[rows]).mean()

    train(model, loss, steps, 2e-3)


def reinforce(model: GPT2, x: Tensor, y: Tensor, steps: int, seed: int) -> None:
    """Sample an answer, reward 1 if it is right, raise its probability by (reward − mean reward)."""
    random = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        rows = torch.randint(len(x), (BATCH,), generator=random)
        log_p = model(x[rows])[:, -1].log_softmax(-1)
        said = torch.multinomial(log_p.detach().exp(), 1, generator=random).squeeze(-1)
        reward = (said == y[rows]).float()
        return -((reward - reward.mean()) * log_p.gather(1, said[:, None]).squeeze(1)).mean()

    train(model, loss, steps, 2e-3)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy on both tasks of each way to build the model."""
    steps = max(10, round(PRICE * budget))
    random = torch.Generator().manual_seed(seed + 10_000)
    x, y, _ = examples(EXAMPLES, random)
    test, right, task = examples(1000, random)
    base = new_model(seed)
    curve = pretrain(base, 2 * steps, seed)
    tuned, scratch, rewarded = new_model(seed), new_model(seed + 1), new_model(seed + 1)
    tuned.load_state_dict(base.state_dict())
    fine_tune(tuned, x, y, steps // 2, seed)
    fine_tune(scratch, x, y, steps // 2, seed)
    reinforce(rewarded, x, y, steps // 2, seed)
    models = {"fine-tuned": tuned, "scratch": scratch, "base": base, "reward only": rewarded}
    columns: dict[str, Any] = {"model": list(models)}
    for number, name in enumerate(TASKS):
        rows = task == number
        with torch.no_grad():
            hits = [(m(test[rows])[:, -1].argmax(-1) == right[rows]).double().mean() for m in models.values()]
        columns[name] = [float(hit) for hit in hits]
    return {**columns, "steps": steps, "labels": EXAMPLES, "loss": [curve[0], curve[-1]]}


def verdict(numbers: dict[str, Any]) -> str:
    """Open below 150 steps. Supported when on both tasks the fine-tuned model is ahead by 0.1 at least of scratch and

    of the unadapted model, and the rewarded model is right at less than 0.35 (chance is 0.25 and 0.04).
    """
    if numbers["steps"] < 150:
        return "open"
    for task in TASKS:
        tuned, scratch, base, rewarded = numbers[task]
        if tuned < max(scratch, base) + 0.1 or rewarded > 0.35:
            return "refuted"
    return "supported"


def figure(numbers: dict[str, Any]) -> Figure:
    """Bars for each model and task."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(7, 3.8), layout="constrained")
    axes = picture.subplots()
    at = range(len(numbers["model"]))
    for shift, task, color in ((-0.2, "circle", "#2b6cd8"), (0.2, "next", "#d66820")):
        axes.bar([i + shift for i in at], numbers[task], 0.38, color=color, label=f"task: {task}")
    axes.set_xticks(list(at), numbers["model"])
    axes.set_ylim(0, 1.05)
    axes.set_title(f"accuracy after {numbers['labels']} labelled examples", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return picture
