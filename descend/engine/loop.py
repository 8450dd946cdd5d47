"""How long and how carefully to train: the values of a run that are the same for every family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from descend.errors import Mistake
from descend.ranges import Count, Fraction, NonNegative, Range, Seed, Whole, check

KEEP = 2  # checkpoints: one to use, one to fall back on


@dataclass(frozen=True)
class Loop:
    """How long and how carefully to train."""

    steps: Count = 1000
    """Total optimizer steps."""
    batch: Annotated[int, Range(int, least=0, most=10**7)] = 32
    """Examples in a step (over all micro-batches and processes); 0: all of them, where the data is finite."""
    accumulate: Annotated[int, Range(int, least=1, most=10**5)] = 1
    """Micro-batches that a step is split into, to save memory."""
    clip: NonNegative = 0.0
    """Largest global gradient norm; 0: no clipping."""
    spikes: str = "tell"
    """At a sudden jump of the loss or the gradient's norm: off, tell (log it), skip (leave the step out) or rollback
    (to the last checkpoint, and on with the data after it)."""
    ema: Fraction = 0.0
    """Decay of the moving average of the weights that is evaluated and saved; 0: none."""
    raw: bool = False
    """Score the weights without the average, too (raw_loss, ..), to see what the average is worth."""
    eval_every: Count = 100
    """Steps between evaluations on the validation data."""
    save_every: Count = 100
    """Steps between checkpoints."""
    keep: Annotated[int, Range(int, least=0, most=1_000_000)] = KEEP
    """The newest checkpoints stay, as many as this, besides the best; 0: all of them, to look at the training later."""
    watch: str = "min loss"
    """What selects the best checkpoint: min or max, and a validation score."""
    patience: Whole = 0
    """Stop after this many evaluations without improvement; 0: never."""
    margin: NonNegative = 0.0
    """How much better than the best a score must be to count as an improvement."""
    seed: Seed = 0
    """Seed of everything random: weights, data order, dropout."""
    device: str = "auto"
    """auto, cpu, cuda or mps (Apple); auto: cuda where there is one, else mps, else cpu."""
    threads: Annotated[int, Range(int, least=0, most=1024)] = 0
    """CPU threads; 0: chosen by the size of the model and batch."""
    precision: str = "auto"
    """auto, float32 or bfloat16, for matrix products; auto takes bfloat16 for large steps where it is faster."""
    compile: str = "auto"
    """auto, on or off: torch.compile."""
    parallel: str = "ddp"
    """Under torchrun: ddp (copies) or fsdp (shards)."""

    def __post_init__(self) -> None:
        check(self)
        if self.raw and not self.ema:
            raise Mistake("--raw compares the average with the weights themselves; give --ema, e.g. 0.999")
        choices = {
            "device": ("auto", "cpu", "cuda", "mps"),
            "precision": ("auto", "float32", "bfloat16"),
            "compile": ("auto", "on", "off"),
            "parallel": ("ddp", "fsdp"),
            "spikes": ("off", "tell", "skip", "rollback"),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise Mistake(f"--{name} {getattr(self, name)}: choose {', '.join(known)}")
        if self.watch.split()[:1] not in (["min"], ["max"]) or len(self.watch.split()) != 2:
            raise Mistake(f"--watch {self.watch!r}: give min or max and the score, for example 'min loss'")

    @property
    def watched(self) -> tuple[bool, str]:
        """Whether higher is better, and the score's name."""
        direction, name = self.watch.split()
        return direction == "max", name
