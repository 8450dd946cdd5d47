"""Which tests a change touches, tried on a small tree of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.touched import find_importers, find_tests, list_changed, list_imports, mirror

TREE = {
    "descend/__init__.py": "",
    "descend/ops/__init__.py": "",
    "descend/ops/softmax.py": "import torch\n",
    "descend/ops/entropy.py": "def f():\n    from descend.ops import softmax\n",
    "descend/nn/attention.py": "from descend.ops.softmax import softmax\n",
    "descend/models/gpt.py": "import descend.nn.attention\n",
    "descend/recipes/gpt_chars.py": "from descend.models.gpt import GPT\n",
    "descend/native/dot.cpp": "",
    "tests/ops/test_softmax.py": "from descend.ops.softmax import softmax\n",
    "tests/ops/test_entropy.py": "from descend.ops.entropy import f\n",
    "tests/nn/test_attention.py": "from descend.nn.attention import attend\n",
    "tests/nn/test_a_zoo.py": "from descend.nn.attention import attend\n",
    "tests/models/test_gpt.py": "from descend.models import gpt\n",
    "tests/recipes/test_contract.py": "",
    "tests/native/test_dot.py": "",
    "tests/peers.py": "",
    "tests/nn/test_peers.py": "from tests.peers import peer\n",
}
SOFTMAX, ENTROPY, ATTENTION, ZOO, GPT = (
    f"tests/{name}.py"
    for name in ("ops/test_softmax", "ops/test_entropy", "nn/test_attention", "nn/test_a_zoo", "models/test_gpt")
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, source in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("descend/ops/softmax.py", [SOFTMAX, ATTENTION, ENTROPY, ZOO, GPT]),
        ("descend/ops/entropy.py", [ENTROPY]),
        ("descend/models/gpt.py", [GPT]),
        ("descend/recipes/gpt_chars.py", ["tests/recipes/test_contract.py"]),
        ("descend/native/dot.cpp", ["tests/native/test_dot.py"]),
        ("tests/peers.py", ["tests/nn/test_peers.py"]),
        ("tests/nn/test_a_zoo.py", [ZOO]),
        ("descend/gone.py", []),
        ("README.md", []),
    ],
)
def test_what_one_change_touches(tree: Path, changed: str, tests: list[str]) -> None:
    assert find_tests([changed], root=tree) == tests


def test_the_limit_keeps_the_nearest(tree: Path) -> None:
    assert find_tests(["descend/ops/softmax.py"], root=tree, limit=2) == [SOFTMAX, ATTENTION]
    assert find_tests(["descend/ops/softmax.py", "tests/models/test_gpt.py"], root=tree, limit=2) == [SOFTMAX, GPT]


def test_importers(tree: Path) -> None:
    importers = find_importers(tree)
    assert importers["descend/ops/softmax.py"] == {"descend/ops/entropy.py", "descend/nn/attention.py", SOFTMAX}
    assert "descend/ops/__init__.py" not in importers  # the module inside it is meant
    assert set(list_imports("import a.b\nfrom c import d")) == {"a.b", "c", "c.d"}


def test_mirror() -> None:
    assert mirror("descend/nn/attention/multi_head.py") == "tests/nn/attention/test_multi_head.py"
    assert mirror("descend/labs/_training.py") == "tests/labs/test_training.py"
    assert mirror("descend/cli.py") == "tests/test_cli.py"


def test_changed_files_are_git_s(tree: Path) -> None:
    def git(*args: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *args], cwd=tree, check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    assert list_changed(tree) == []
    (tree / "descend/models/gpt.py").write_text("import math\n", encoding="utf-8")
    (tree / "new.py").write_text("", encoding="utf-8")
    assert list_changed(tree) == ["descend/models/gpt.py", "new.py"]
    git("add", ".")
    git("commit", "-m", "two")
    assert list_changed(tree) == []
    assert list_changed(tree, base="HEAD~1") == ["descend/models/gpt.py", "new.py"]
