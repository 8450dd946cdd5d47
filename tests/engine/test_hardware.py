"""How many threads a run takes, and which device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from descend import recipes
from descend.data.streams.batches import slice_examples
from descend.engine import hardware
from descend.engine.loop import Loop
from descend.errors import Mistake
from descend.kinds.saved import from_json, to_json
from descend.verbs.asked import read_asked
from descend.verbs.train import TrainFlags
from proofs.tiny import shrink_flags, write_files
from tests.engine.small import training

SMALL, LARGE = nn.Linear(4, 4), nn.Linear(4000, 4000)


@pytest.mark.parametrize(
    ("wanted", "model", "variables", "expected"),
    [
        (3, SMALL, {}, 3),
        (9, SMALL, {}, 4),
        (0, SMALL, {}, 1),
        (0, LARGE, {}, 4),
        (0, LARGE, {"OMP_NUM_THREADS": "2"}, 2),
        (0, LARGE, {"OMP_NUM_THREADS": "2,1"}, 2),
        (0, LARGE, {"OMP_NUM_THREADS": "many"}, 4),
        (3, LARGE, {"OMP_NUM_THREADS": "2"}, 3),
        (0, LARGE, {"OMP_NUM_THREADS": "1", "LOCAL_WORLD_SIZE": "2"}, 2),
    ],
)
def test_threads(
    wanted: int, model: nn.Module, variables: dict[str, str], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OMP_NUM_THREADS", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr("sys.platform", "linux")
    assert hardware.choose_threads(wanted, model, 256) == expected


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Says which accelerators the machine has."""

    def choose(*names: str, processes: int = 1) -> None:
        monkeypatch.setattr("torch.cuda.is_available", lambda: "cuda" in names)
        monkeypatch.setattr("torch.backends.mps.is_available", lambda: "mps" in names)
        monkeypatch.setenv("WORLD_SIZE", str(processes))

    return choose


@pytest.mark.parametrize(
    ("names", "processes", "best"),
    [
        ((), 1, "cpu"),
        (("mps",), 1, "mps"),
        (("cuda",), 1, "cuda:0"),
        (("cuda", "mps"), 2, "cuda:0"),
        (("mps",), 2, "cpu"),
    ],
)
def test_auto_takes_the_best_that_is_there(
    there: Callable[..., None], names: tuple[str, ...], processes: int, best: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    there(*names, processes=processes)
    assert str(hardware.find_device()) == best
    assert str(hardware.find_device("cpu")) == "cpu"


def test_each_process_has_a_card_of_its_own(there: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    there("cuda", processes=4)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert str(hardware.find_device("cuda")) == "cuda:3"


def test_a_named_device_that_is_not_there(there: Callable[..., None]) -> None:
    there("mps")
    with pytest.raises(Mistake, match="--device cuda: torch finds none here; give --device mps"):
        hardware.find_device("cuda")
    there()
    with pytest.raises(Mistake, match="--device mps: torch finds none here; give --device cpu"):
        hardware.find_device("mps")
    there("mps", processes=2)
    with pytest.raises(Mistake, match="--device mps: torchrun's processes cannot share it"):
        hardware.find_device("mps")
    with pytest.raises(Mistake, match="--device tpu: choose auto, cpu, cuda, mps"):
        Loop(device="tpu")


def test_a_recipe_of_the_last_release_names_no_device() -> None:
    saved = to_json(recipes.get("mlp-wine"))
    assert saved["loop"].pop("device") == "auto"
    assert from_json(saved) == recipes.get("mlp-wine")


@pytest.mark.parametrize(
    "error",
    [
        TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. Please"),
        NotImplementedError("The operator 'aten::x' is not currently implemented for the MPS device. If you want"),
    ],
)
def test_what_mps_cannot_do_is_told_in_one_line(error: Exception) -> None:
    with (
        pytest.raises(Mistake, match=r"--device mps cannot run this: .*; give --device cpu$"),
        hardware.tell_unsupported(),
    ):
        raise error
    with pytest.raises(TypeError, match="another"), hardware.tell_unsupported():
        raise TypeError("another mistake")


class NoDoubles(TorchDispatchMode):
    """Inside, a float64 tensor is an error, as on MPS. (Single numbers are Python's.)"""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if any(isinstance(x, Tensor) and x.dtype == torch.float64 and x.dim() for x in tree_leaves(out)):
            raise TypeError(f"float64 from {func}")
        return out


@pytest.mark.parametrize("name", ["bert-tag", "cnn-images", "gpt2-chars", "mlp-csv", "unet-scenes", "clip-scenes"])
def test_a_step_and_a_score_need_no_float64(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apple's MPS has none. `widen` takes counts to the CPU, where all examples are judged too."""
    monkeypatch.setattr("descend.engine.gradients.widen", Tensor.float)
    flags = shrink_flags(name, write_files(tmp_path))
    asked = read_asked(TrainFlags, recipes.get(name), flags, name)
    run = training(asked.recipe)
    batches, held = run.draw(), next(iter(run.parts.valid))
    with NoDoubles():
        run.play(batches)
        run.task.eval().score(slice_examples(held, 0, 8))
