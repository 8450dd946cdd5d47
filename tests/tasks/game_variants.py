"""Small games of every kind in float64, and their steps in one process of two: what test_adversarial_split starts."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from descend.contracts import Batch
from descend.data.streams.sliced import Sliced
from descend.engine.distributed import World, gather, join
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.losses.adversarial import Hinge, LeastSquares, Relativistic, RelativisticMean, Saturating, Wasserstein
from descend.losses.gradient_penalty import R1, GradientPenalty
from descend.models.conditional_gan import ConditionalDiscriminator, ConditionalGAN, ConditionalGANConfig
from descend.models.gan import Discriminator, GANConfig, Generator
from descend.nn.adversarial.spectral import normalize_spectrum
from descend.optim.rules import SGD
from descend.optim.schedules import Constant
from descend.tasks.adversarial import Adversarial, GameRules
from tests.engine.test_training import Repeat

B, STEPS = 16, 3
RULES: dict[str, GameRules] = {
    "saturating": GameRules(Saturating()),
    "several moves": GameRules(d_moves=2),
    "more moves of g": GameRules(d_moves=1, g_moves=2),
    "least squares": GameRules(LeastSquares()),
    "wasserstein": GameRules(Wasserstein(), clip=0.1, d_moves=2),
    "gradient penalty": GameRules(Wasserstein(), GradientPenalty(10.0), d_moves=2),
    "r1": GameRules(penalty=R1(1.0)),
    "spectral hinge": GameRules(Hinge(), d_moves=2),
    "relativistic": GameRules(Relativistic(), d_moves=2),
    "relativistic mean": GameRules(RelativisticMean(), d_moves=2),
    "conditional": GameRules(),
}
REFUSED = {"gradient penalty": "fsdp", "r1": "fsdp"}  # shards are gone when the slope is differentiated again
MODES = ("ddp", "fsdp")


def judge(x: Tensor, *given: Tensor) -> dict[str, Tensor]:
    return {"norm": x.norm(dim=1)}


def make(name: str) -> tuple[Adversarial, Batch]:
    """The game and a batch; the same every time."""
    torch.manual_seed(0)
    given: tuple[str, ...] = ("y",) if name == "conditional" else ()
    g: nn.Module
    d: nn.Module
    if given:
        config = ConditionalGANConfig(latent=3, classes=3, shape=(2,), width=8, label_width=2)
        g, d = ConditionalGAN(config), ConditionalDiscriminator(config)
    else:
        g, d = Generator(GANConfig(latent=3, outputs=2, width=8, depth=2)), Discriminator(2, 8, 2)
    if "spectral" in name:
        normalize_spectrum(d)
    x, z = torch.randn(B, 2).double(), torch.randn(B, 3).double()
    batch = {"ids": torch.arange(B), "x": x, "z": z, "u": torch.rand(B).double(), "y": torch.arange(B) % 3}
    return Adversarial(g, d, judge, RULES[name], given=given).double(), batch


def train(name: str, accumulate: int, world: World, parallel: str = "ddp") -> tuple[Batch, dict[str, float]]:
    """Weights and buffers of both players after some steps, and the metrics of the last one."""
    task, batch = make(name)
    stream = Sliced(Repeat(batch), B, accumulate, world.rank, world.size)
    rules = {player: SGD(0.05) for player in task.players}
    loop = Loop(accumulate=accumulate, precision="float32", compile="off", parallel=parallel)
    run = Training(Parts(task, task.g, stream, [batch], rules), loop, Constant(), world)  # type: ignore[arg-type]
    metrics: dict[str, float] = {}
    for _ in range(STEPS):
        metrics = run.advance()
    return {key: x.clone() for key, x in gather(task.state_dict()).items()}, metrics


def save(name: str, mode: str, where: Path, world: World) -> None:
    """The steps of one game among the processes, written by the first."""
    state, metrics = train(name, 2, world, mode)
    told = {f"metric {key}": torch.tensor(value, dtype=torch.float64) for key, value in metrics.items()}
    if world.first:
        save_file({key: x.contiguous() for key, x in (state | told).items()}, where / f"{name}-{mode}.safetensors")


def games(mode: str) -> list[str]:
    """Those that this way of several processes can play."""
    return [name for name in RULES if REFUSED.get(name) != mode]


def main(args: list[str]) -> None:
    """Every game in both modes."""
    torch.set_num_threads(1)
    where, processes = Path(args[0]), join()
    for mode in MODES:
        for name in games(mode):
            save(name, mode, where, processes)
    torch.distributed.destroy_process_group()
