"""A small task and a batch of eight for every class of `descend.tasks`, in float64: what contract tests build.

A new task needs a case here, or a reason why splitting its batch changes its equation.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import torch
from torch import Tensor, nn

import descend.tasks
from descend.contracts import Batch, Task
from descend.models import beit, bert, clip, deit, llama, lstm_lm, mixtral, seq2seq, word_vectors
from descend.models.actor_critic import ActorCritic, ActorCriticConfig
from descend.models.q_network import QNetwork, QNetworkConfig
from descend.ops.actions import Categorical
from descend.tasks import (
    adversarial_examples,
    classify,
    contrastive,
    distill,
    dqn,
    fine_tune,
    instruct,
    language,
    localise,
    masked,
    masked_image,
    ppo,
    regress,
    segment,
    sequence_to_sequence,
    supervise,
    taught,
    truncated,
    weighted,
)
from descend.tasks import word_vectors as words
from tests.tasks import (
    adversarial_cases,
    alignment_cases,
    control_cases,
    detection_cases,
    diffusion_cases,
    energy_cases,
    flow_cases,
    graph_cases,
    imitation_cases,
    latent_cases,
    ldm_cases,
    retrieval_cases,
    self_supervised_cases,
    tabular_cases,
)

B = 8
RANDOM = {
    "ClassifyMixed": "each micro-batch is mixed with itself, in proportions drawn anew",
    "ScheduledSampling": "which words are the model's own is drawn anew for each micro-batch",
}
ABSTRACT = {"Acting", "EnergyTask", "FromLosses", "Imitation", "JointEmbedding", "Playing", "Representation"}
ONE_PROCESS = {
    "Chain": "its stages hand whole models on, and its kinds refuse several processes",
    "TruncatedLanguage": "the state of each track lives in one process",
    "InstructNear": "its penalty reads the weights outside of the forward pass, which is refused in shards",
    "EstimatedLikelihood": "its trace is a reverse pass inside of the forward pass, which is refused in shards",
}


def task_classes() -> dict[str, type[Task]]:
    """Every concrete task, by the files of the folder."""
    found = {}
    for path in sorted(Path(descend.tasks.__path__[0]).glob("*.py")):
        for name, kind in vars(import_module(f"descend.tasks.{path.stem}")).items():
            if inspect.isclass(kind) and issubclass(kind, Task) and kind.__module__.startswith("descend.tasks"):
                found[name] = kind
    return {name: kind for name, kind in found.items() if name not in ABSTRACT}


def play_nothing(act: object, seeds: object) -> Tensor:
    raise AssertionError("no episode is played here")


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def tokens(vocab: int, *shape: int) -> Tensor:
    return torch.randint(1, vocab, shape)


def marks(*shape: int) -> Tensor:
    """Some true, and another number of them in every row; none in the last."""
    width = shape[1]
    count = torch.arange(shape[0]).flip(0) % width
    return torch.arange(width) < count[:, None]


def classifier(kind: Callable[..., Task]) -> tuple[Task, Batch]:
    return kind(nn.Linear(5, 3)), {"x": numbers(B, 5), "y": torch.randint(3, (B,))}


def images(kind: Callable[..., Task]) -> tuple[Task, Batch]:
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 4 * 4, 3))
    return kind(model), {"x": torch.rand(B, 3, 4, 4, dtype=torch.float64), "y": torch.randint(3, (B,))}


def read(head: type[nn.Module], kind: Callable[..., Task], batch: Batch) -> tuple[Task, Batch]:
    text = {"x": tokens(61, B, 9), "mask": torch.ones(B, 9, dtype=torch.bool)}
    return kind(head(replace(bert.TINY, depth=1))), text | batch


def masked_language() -> tuple[Task, Batch]:
    batch = {"y": tokens(61, B, 9), "at": marks(B, 9)}
    return read(bert.BertForMaskedLM, masked.MaskedLanguage, batch)


def masked_and_next() -> tuple[Task, Batch]:
    more = {"y": tokens(61, B, 9), "at": marks(B, 9), "segments": torch.zeros(B, 9, dtype=torch.long)}
    return read(bert.BertForPreTraining, masked.MaskedAndNext, more | {"follows": torch.randint(2, (B,))})


def balanced_language() -> tuple[Task, Batch]:
    task = language.BalancedLanguage(mixtral.Mixtral(mixtral.TINY), 0.5)
    return task, {"x": tokens(61, B, 6), "y": tokens(61, B, 6)}


def mixed_language() -> tuple[Task, Batch]:
    task = language.MixedLanguage(llama.Llama(llama.TINY), ["prose", "code"])
    return task, {"x": tokens(61, B, 6), "y": tokens(61, B, 6), "source": torch.arange(B) % 2}


def conversations() -> Batch:
    """Rows of different lengths; from the fourth token on everything is an answer, of two rows general text."""
    found, lengths = tokens(61, B, 9), 5 + torch.arange(B) % 5
    inside = torch.arange(9) < lengths[:, None]
    said = inside & (torch.arange(9) >= 3)
    return {"tokens": found.masked_fill(~inside, -1), "said": said, "source": torch.arange(B) // 6}


def instruct_case() -> tuple[Task, Batch]:
    return instruct.Instruct(llama.Llama(llama.TINY)), conversations()


def instruct_near_case() -> tuple[Task, Batch]:
    model, before = llama.Llama(llama.TINY), llama.Llama(llama.TINY)
    return instruct.InstructNear(model, before, 0.1), conversations()


def masked_image_case() -> tuple[Task, Batch]:
    model = beit.BeitForMaskedImageModeling(replace(beit.TINY, mask_token=True))
    return masked_image.MaskedImage(model), {"x": numbers(B, 3, 12, 12), "hide": marks(B, 9), "y": tokens(11, B, 9)}


def pair_case(kind: Callable[..., Task]) -> tuple[Task, Batch]:
    x, y = tokens(61, B, 7), tokens(61, B, 5)
    for row in range(B):
        y[row, 5 - row % 4 :] = 0
    return kind(seq2seq.Seq2Seq(seq2seq.TINY)), {"x": x, "y": y}


def contrastive_case() -> tuple[Task, Batch]:
    text = tokens(59, B, 7)
    text[:, -1] = 60
    text[: B // 2, 4:] = 60  # one half of the batch has shorter texts than the other
    return contrastive.Contrastive(clip.Clip(clip.TINY)), {"x": numbers(B, 3, 8, 8), "tokens": text}


def distill_case() -> tuple[Task, Batch]:
    teacher = nn.Sequential(nn.Flatten(), nn.Linear(3 * 12 * 12, len(deit.TINY.labels.names)))
    student = deit.DeiTForImageClassificationWithTeacher(deit.TINY)
    return distill.Distill(student, teacher), {"x": numbers(B, 3, 12, 12), "y": torch.randint(2, (B,))}


def taught_classes() -> tuple[Task, Batch]:
    return classifier(lambda m: taught.TaughtClasses(m, copy.deepcopy(m), 0.3, 2.0))


def taught_language() -> tuple[Task, Batch]:
    teacher = lstm_lm.RecurrentLM(lstm_lm.TINY).double()
    task = taught.TaughtLanguage(lstm_lm.RecurrentLM(lstm_lm.TINY), teacher, 0.3, 2.0)
    return task, {"x": tokens(61, B, 6), "y": tokens(61, B, 6)}


def dqn_case() -> tuple[Task, Batch]:
    task = dqn.DQN(QNetwork(QNetworkConfig(3, 2, 8, 1)), 0.9, dqn.Hard(1), play_nothing)
    batch = {"observation": numbers(B, 3), "next": numbers(B, 3), "reward": numbers(B)}
    more = {"action": torch.randint(2, (B,)), "terminated": torch.arange(B) % 3 == 0}
    return task, {**batch, **more, "draw": torch.zeros(B, dtype=torch.long)}


def ppo_case() -> tuple[Task, Batch]:
    policy = ActorCritic(ActorCriticConfig(3, 2, 8, 1)).double()
    task = ppo.PPO(policy, Categorical, ppo.Proximal(epochs=2, minibatches=2, entropy=0.1), play_nothing, seed=0)
    batch = {"observation": numbers(B, 4, 3), "next": numbers(B, 4, 3), "reward": numbers(B, 4)}
    never = torch.zeros(B, 4, dtype=torch.bool)
    rollout = {**batch, "action": torch.randint(2, (B, 4)), "terminated": never, "truncated": never}
    return task, task.look_back(rollout) | {"draw": torch.zeros(B, dtype=torch.long)}


def localise_case() -> tuple[Task, Batch]:
    class Heads(nn.Module):
        """No batch norm: its statistics are those of a micro-batch."""

        def __init__(self) -> None:
            super().__init__()
            self.classes, self.box = nn.Linear(6, 3), nn.Linear(6, 4)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return self.classes(x), self.box(x)

    box = torch.tensor([0.1, 0.2, 0.6, 0.7], dtype=torch.float64).expand(B, 4)
    return localise.Localise(Heads()), {"x": numbers(B, 6), "y": torch.randint(3, (B,)), "box": box}


def segment_case() -> tuple[Task, Batch]:
    weight = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
    task = segment.Segment(nn.Conv2d(2, 3, 3, padding=1), weight, dice=0.5)
    return task, {"x": numbers(B, 2, 6, 6), "y": torch.randint(3, (B, 6, 6), dtype=torch.uint8)}


def truncated_case() -> tuple[Task, Batch]:
    task = truncated.TruncatedLanguage(lstm_lm.RecurrentLM(lstm_lm.TINY), B)
    fresh = torch.arange(B) % 2 == 0
    return task, {"x": tokens(61, B, 6), "y": tokens(61, B, 6), "rows": torch.arange(B), "fresh": fresh}


def vectors(kind: Callable[..., Task], model: type[nn.Module], batch: Batch) -> tuple[Task, Batch]:
    return kind(model(word_vectors.TINY)), batch


CASES: dict[str, Callable[[], tuple[Task, Batch]]] = {
    **adversarial_cases.CASES,
    **alignment_cases.CASES,
    **control_cases.CASES,
    **detection_cases.CASES,
    **diffusion_cases.CASES,
    **energy_cases.CASES,
    **graph_cases.CASES,
    **imitation_cases.CASES,
    **latent_cases.CASES,
    **ldm_cases.CASES,
    **retrieval_cases.CASES,
    "BalancedLanguage": balanced_language,
    "MixedLanguage": mixed_language,
    "Classify": lambda: classifier(classify.Classify),
    "ClassifyAdversarially": lambda: images(lambda m: adversarial_examples.ClassifyAdversarially(m, 0.1)),
    "ClassifyText": lambda: read(
        bert.BertForSequenceClassification, fine_tune.ClassifyText, {"y": torch.randint(2, (B,))}
    ),
    "ClassifyWeighted": lambda: classifier(
        lambda m: weighted.ClassifyWeighted(m, torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64))
    ),
    "Contrastive": contrastive_case,
    "DQN": dqn_case,
    "Distill": distill_case,
    "FindSpan": lambda: read(
        bert.BertForQuestionAnswering, fine_tune.FindSpan, {"y": torch.tensor([[2, 4]]).expand(B, 2), "at": marks(B, 9)}
    ),
    "Instruct": instruct_case,
    "InstructNear": instruct_near_case,
    "Language": lambda: (
        language.Language(lstm_lm.RecurrentLM(lstm_lm.TINY)),
        {"x": tokens(61, B, 6), "y": tokens(61, B, 6)},
    ),
    "Localise": localise_case,
    "LogCounts": lambda: vectors(
        words.LogCounts, word_vectors.GloVe, {"i": tokens(11, B), "j": tokens(11, B), "x": 1.0 + tokens(9, B)}
    ),
    "LogRatios": lambda: vectors(
        words.LogRatios,
        word_vectors.GloVeTriples,
        {"i": tokens(11, B), "s": tokens(11, B), "g": tokens(11, B), "r": numbers(B)},
    ),
    "MaskedAndNext": masked_and_next,
    "MaskedImage": masked_image_case,
    "MaskedLanguage": masked_language,
    "NegativeSampling": lambda: vectors(
        words.NegativeSampling, word_vectors.SkipGram, {"x": tokens(11, B), "words": tokens(11, B, 4)}
    ),
    "PPO": ppo_case,
    "Regress": lambda: (regress.Regress(nn.Linear(5, 1)), {"x": numbers(B, 5), "y": numbers(B)}),
    "Segment": segment_case,
    "SequenceToSequence": lambda: pair_case(lambda m: sequence_to_sequence.SequenceToSequence(m, 0, 0, 0.1)),
    "Supervise": lambda: (
        supervise.Supervise(nn.Linear(5, 2), supervise.NUMBERS.cost),
        {"x": numbers(B, 5), "y": numbers(B, 2)},
    ),
    "TagTokens": lambda: read(
        bert.BertForTokenClassification, fine_tune.TagTokens, {"y": torch.randint(2, (B, 9)), "at": marks(B, 9)}
    ),
    "Translation": lambda: pair_case(
        lambda m: sequence_to_sequence.Translation(m, 0, 0, 0.1, lambda x: ["a"] * len(x), ["a", "b"])
    ),
    "TaughtClasses": taught_classes,
    "TaughtLanguage": taught_language,
    "TruncatedLanguage": truncated_case,
}

CASES |= self_supervised_cases.CASES | flow_cases.CASES | tabular_cases.CASES


def make(name: str) -> tuple[Task, Batch]:
    """The case in float64; the same every time."""
    torch.manual_seed(0)
    task, batch = CASES[name]()
    batch = {key: x.double() if x.is_floating_point() else x for key, x in batch.items()}
    return task.double(), {"ids": torch.arange(B), **batch}
