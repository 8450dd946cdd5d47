"""A card promises another library's class only where there is one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from descend import models
from descend.exports.card import is_public

transformers = pytest.importorskip("transformers", reason="no transformers: its classes are not looked up")
READ = {"LLaMAForCausalLM"}  # a name of old files, which is never written
PROMISED = {
    name: layout
    for name in models.names()
    if (layout := getattr(import_module(f"descend.models.{name}"), "LAYOUT", None)) and is_public(layout)
}


@pytest.mark.parametrize("name", [name for name, layout in PROMISED.items() if layout.library == "transformers"])
def test_transformers_has_the_class(name: str) -> None:
    file: Any = import_module(f"descend.models.{name}")
    written = {PROMISED[name].architecture, *getattr(file, "ARCHITECTURES", {})} - READ
    assert [architecture for architecture in written if not hasattr(transformers, architecture)] == []


def test_many_models_are_public() -> None:
    assert {"gpt2", "bert", "llama", "vit", "resnet"} <= set(PROMISED)
    assert not {"clip_resnet", "yolo_v8", "word_vectors", "palm"} & set(PROMISED)
