"""What `inspect` reads, against the packages that write the files; and files that are damaged, cut short, or code."""

from __future__ import annotations

import os
from pathlib import Path

import gguf
import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from safetensors.torch import save_file

from descend.errors import Mistake
from descend.exports.contents import open_contents
from descend.models.gpt2 import GPT2
from descend.models.gpt2 import TINY as GPT2_TINY


def write_gguf(path: Path) -> None:
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("small")
    writer.add_context_length(24)
    writer.add_rope_freq_base(1e4)
    writer.add_token_list([f"t{k}" for k in range(20)])
    writer.add_tensor("a", np.zeros((3, 64), np.float32))
    packed = gguf.quants.quantize(np.ones((2, 64), np.float32), gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("b", packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_onnx(path: Path) -> None:
    weights = helper.make_tensor("w", TensorProto.FLOAT, [4, 2], np.arange(8, dtype=np.float32).tobytes(), raw=True)
    half = helper.make_tensor("h", TensorProto.FLOAT16, [2], np.zeros(2, np.float16).tobytes(), raw=True)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Relu", ["y"], ["z"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["batch", 2])],
        [weights, half],
    )
    model = helper.make_model(graph, producer_name="test", opset_imports=[helper.make_opsetid("", 18)])
    helper.set_model_props(model, {"author": "me"})
    onnx.save(model, path)


def test_safetensors_with_metadata(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    save_file({"a": torch.zeros(2, 3), "b": torch.zeros(4, dtype=torch.bfloat16)}, path, metadata={"format": "pt"})
    found = open_contents(path)
    assert {(t.name, t.dtype, t.shape, t.bytes) for t in found.tensors} == {
        ("a", "F32", (2, 3), 24),
        ("b", "BF16", (4,), 8),
    }
    assert found.metadata == {"format": "pt"}
    assert (found.numbers, found.bytes, found.dtypes) == (10, 32, {"F32": 1, "BF16": 1})


def test_gguf_equals_the_packages_reader(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    write_gguf(path)
    found, theirs = open_contents(path), gguf.GGUFReader(str(path))
    expected = [(t.name, t.tensor_type.name, t.n_elements, t.n_bytes) for t in theirs.tensors]
    assert [(t.name, t.dtype, t.numbers, t.bytes) for t in found.tensors] == expected
    assert found.tensors[1].shape == (2, 64), "rows first"
    assert found.metadata["llama.context_length"] == theirs.fields["llama.context_length"].contents()
    assert found.metadata["tokenizer.ggml.tokens"]["items"] == 20


def test_onnx_equals_the_packages_reader(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    write_onnx(path)
    found, theirs = open_contents(path), onnx.load(path)
    expected = [(t.name, tuple(t.dims), len(t.raw_data)) for t in theirs.graph.initializer]
    assert [(t.name, t.shape, t.bytes) for t in found.tensors] == expected
    assert [t.dtype for t in found.tensors] == ["F32", "F16"]
    assert found.graph == {
        "inputs": {"x": ["F32", "batch", 4]},
        "outputs": {"z": ["F32", "batch", 2]},
        "nodes": 2,
        "operations": {"MatMul": 1, "Relu": 1},
        "opset": {"": 18},
    }
    assert found.metadata == {"producer": "test", "author": "me"}


def test_tables_of_tensors_in_one_another(tmp_path: Path) -> None:
    for zipped in (True, False):
        path = tmp_path / "m.pt"
        state = {"model": {"w": torch.zeros(2, 3)}, "step": 7, "lr": [0.1, 0.2], "name": "x"}
        torch.save(state, path, _use_new_zipfile_serialization=zipped)
        found = open_contents(path)
        assert [(t.name, t.dtype, t.shape, t.bytes) for t in found.tensors] == [("model.w", "F32", (2, 3), 24)]
        assert found.metadata == {"step": 7, "lr.0": 0.1, "lr.1": 0.2, "name": "x"}


def test_a_model_folder(tmp_path: Path) -> None:
    model = GPT2(GPT2_TINY)
    model.save_pretrained(tmp_path, shard_bytes=20_000)
    found = open_contents(tmp_path)
    assert found.numbers == sum(p.numel() for p in model.parameters())
    assert found.metadata["model"] == "GPT2LMHeadModel"
    assert len(found.metadata["weights"]) > 1
    assert "config.json" in found.metadata["beside"]


class Call:
    """What an evil pickle is made of."""

    def __init__(self, flag: Path):
        self.flag = flag

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self.flag}",)


def test_a_pickle_with_code_is_refused_and_named(tmp_path: Path) -> None:
    flag = tmp_path / "ran"
    for zipped in (True, False):
        torch.save({"w": torch.zeros(1), "x": Call(flag)}, tmp_path / "evil.pt", _use_new_zipfile_serialization=zipped)
        with pytest.raises(Mistake, match=r"evil\.pt is a pickle that calls posix\.system when it is opened"):
            open_contents(tmp_path / "evil.pt")
    torch.save(GPT2(GPT2_TINY), tmp_path / "whole.pt")
    with pytest.raises(Mistake, match=r"calls descend\.models\.gpt2\.GPT2"):
        open_contents(tmp_path / "whole.pt")
    assert not flag.exists()


def test_whatever_is_cut_short_is_refused_in_one_line(tmp_path: Path) -> None:
    """Cut at every tenth of the file, and shortly before its end (a GGUF ends with up to 31 bytes of padding): a
    mistake that names the file, never another error."""
    save_file({"a": torch.zeros(9, 3)}, tmp_path / "whole.safetensors")
    write_gguf(tmp_path / "whole.gguf")
    write_onnx(tmp_path / "whole.onnx")
    torch.save({"a": torch.zeros(9, 3)}, tmp_path / "whole.pt")
    for path in sorted(tmp_path.iterdir()):
        content = path.read_bytes()
        for length in [*(len(content) * k // 10 for k in range(10)), len(content) - 40]:
            cut = path.with_stem("cut")
            cut.write_bytes(content[:length])
            with pytest.raises(Mistake) as caught:
                open_contents(cut)
            assert cut.name in str(caught.value), caught.value
            assert "\n" not in str(caught.value)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf")
    content = (tmp_path / "m.gguf").read_bytes()
    (tmp_path / "m.gguf").write_bytes(content[:-40])
    with pytest.raises(Mistake, match=r"m\.gguf was cut short: tensor 'b' ends at byte [\d,]+, and the file has"):
        open_contents(tmp_path / "m.gguf")
    (tmp_path / "m.gguf").write_bytes(content[:100])
    with pytest.raises(Mistake, match=r"m\.gguf is damaged or was cut short: .* at byte \d+ of 100 has"):
        open_contents(tmp_path / "m.gguf")
    (tmp_path / "m.gguf").write_bytes(b"GGML" + content[4:])
    with pytest.raises(Mistake, match="is no GGUF file"):
        open_contents(tmp_path / "m.gguf")
    (tmp_path / "m.ggfu").write_bytes(content)
    with pytest.raises(Mistake, match=r"Did you mean '\.gguf'"):
        open_contents(tmp_path / "m.ggfu")


@pytest.mark.parametrize("ending", [".gguf", ".onnx"])
def test_random_bytes_are_no_file(ending: str, tmp_path: Path) -> None:
    """Bytes changed at random are read, or refused in one line; nothing else happens."""
    path = tmp_path / f"m{ending}"
    (write_gguf if ending == ".gguf" else write_onnx)(path)
    content, random = path.read_bytes(), np.random.default_rng(0)
    for _ in range(60):
        changed = bytearray(content)
        for at in random.integers(0, len(content), 3):
            changed[at] = int(random.integers(256))
        path.write_bytes(bytes(changed))
        said = ""
        try:
            open_contents(path)
        except Mistake as mistake:
            said = str(mistake)
        assert "\n" not in said
