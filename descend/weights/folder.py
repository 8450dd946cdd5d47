"""A model folder in the Hugging Face layout: config.json and model.safetensors, whole or sharded. Never a pickle.

diffusers calls the same file diffusion_pytorch_model.safetensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from torch import Tensor, nn

from descend.errors import Mistake
from descend.files import entries, read_json, write_json
from descend.weights.files import open_tensors
from descend.weights.reading import plan_reading, read_tensors
from descend.weights.rules import Rule, rename_tensors
from descend.weights.tensor_file import write_tensors

NAMES = {"transformers": "model", "diffusers": "diffusion_pytorch_model"}
"""What a library calls its file of weights."""
PARTS = "model_index.json"
"""Where a pipeline names its parts, each in a folder of its own (`weights/pipeline.py`)."""
ADAPTER = "adapter_config.json"
"""What makes a folder that of an adapter (`weights/peft.py`)."""
WEIGHTS = "model.safetensors"
ENDING = ".safetensors.index.json"
INDEX = f"model{ENDING}"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.pt", "model.pth", "diffusion_pytorch_model.bin")
SHARD_BYTES = 5 * 2**30


def find_weights(folder: Path) -> list[Path]:
    """The safetensors files of a folder; a folder with pickles only is refused with the way to convert it."""
    for name in NAMES.values():
        if (folder / f"{name}.safetensors").exists() or (folder / f"{name}.safetensors").is_symlink():
            return [folder / f"{name}.safetensors"]
        if (folder / f"{name}{ENDING}").exists():
            return find_shards(folder, folder / f"{name}{ENDING}")
    for name in PICKLES:
        if (folder / name).exists():
            converted = name.replace(".bin", ".safetensors") if name.startswith("diffusion") else WEIGHTS
            raise Mistake(
                f"{folder / name} is a pickle, which can run code when opened, so it is not read. Convert it once: "
                f'python -c "import torch, safetensors.torch as s; '
                f"s.save_file({{k: v.clone().contiguous() for k, v in "
                f"torch.load('{folder / name}', weights_only=True).items()}}, '{folder / converted}')\""
            )
    raise Mistake(f"{folder} holds no {WEIGHTS}; is it a model folder?")


def find_shards(folder: Path, index: Path) -> list[Path]:
    """The files that an index names; each must be there."""
    names = sorted(set(entries(read_json(index), "weight_map", str, index).values()))
    if not names:
        raise Mistake(f"{index} names no file of weights; copy it again")
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise Mistake(f"{index}: {name!r} is not a .safetensors file of its folder")
        if not (folder / name).is_file():
            raise Mistake(f"{index} names {name}, which is not in the folder; copy the missing shard")
    return [folder / name for name in names]


def read_weights(model: nn.Module, rules: Sequence[Rule], folder: Path, prefix: str = "") -> None:
    """Copy a folder's tensors into the model, shard by shard (`weights.reading`).

    A model on the meta device gets its memory once the files are known to fit it: sizes that a file only claims cost
    nothing.
    """
    files = [open_tensors(path) for path in find_weights(folder)]
    if any(tensor.is_meta for tensor in model.state_dict().values()):
        plan_reading(model, rules, files, prefix)
        model.to_empty(device="cpu")
    read_tensors(model, rules, files, prefix)


def write_weights(
    state: Mapping[str, Tensor],
    rules: Sequence[Rule],
    folder: Path,
    shard_bytes: int = SHARD_BYTES,
    stem: str = NAMES["transformers"],
) -> dict[str, dict[str, Tensor]]:
    """Write a state dict under the public names, in shards of at most `shard_bytes` when it is larger.

    Returns what each file holds: views of the state's tensors where their numbers are written as they are.
    """
    tensors = rename_tensors(state, rules)
    shards: list[dict[str, Tensor]] = [{}]
    size = 0
    for key, tensor in tensors.items():
        if size and size + tensor.nbytes > shard_bytes:
            shards.append({})
            size = 0
        shards[-1][key] = tensor
        size += tensor.nbytes
    if len(shards) == 1:
        written = {f"{stem}.safetensors": shards[0]}
    else:
        written = {f"{stem}-{i:05d}-of-{len(shards):05d}.safetensors": shard for i, shard in enumerate(shards, start=1)}
        weight_map = {key: name for name, shard in written.items() for key in shard}
        total = sum(tensor.nbytes for tensor in tensors.values())
        write_json(folder / f"{stem}{ENDING}", {"metadata": {"total_size": total}, "weight_map": weight_map})
    for name, shard in written.items():
        write_tensors(folder / name, shard, metadata={"format": "pt"})
    return written
