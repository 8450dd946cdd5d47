"""What a recipe imports: its own model family, and no more of the library than it uses."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache

import pytest

from descend import recipes
from tests.contracts.source import files

MODELS = "descend.models."
SLOW = {"scipy", "sklearn", "sympy", "matplotlib", "torch._dynamo", "torch.distributed.tensor"}  # to import
MOST = 90  # modules of descend that training LeNet on digits may import
TOGETHER = (
    {"actor_critic", "gaussian_actor_critic", "q_network"},
    {"mlp", "neural_ode"},
)  # small ones that share a kind


def module_name(path: str) -> str:
    return ".".join(("descend", *path.removesuffix(".py").split("/"))).removesuffix(".__init__")


@cache
def graph() -> dict[str, set[str]]:
    """Module -> what importing it imports at once: not inside functions, and not for types alone."""
    trees = {module_name(path): tree for path, tree in files().items()}
    found: dict[str, set[str]] = {}
    for module, tree in trees.items():
        names = {"descend." + ".".join(module.split(".")[1:i]) for i in range(2, len(module.split(".")))}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
        found[module] = names & set(trees)
    return found


def reached(*start: str) -> set[str]:
    """All modules that importing these imports."""
    found, left = set(start), list(start)
    while left:
        new = graph()[left.pop()] - found
        found |= new
        left += new
    return found


def model_files(modules: set[str]) -> set[str]:
    """Families: files whose names begin with _ are for all of them."""
    found = {module.removeprefix(MODELS) for module in modules if module.startswith(MODELS)}
    return {name for name in found if not name.startswith("_")}


@pytest.mark.parametrize("name", recipes.names())
def test_a_recipe_imports_only_its_own_model_family(name: str) -> None:
    imported = model_files(reached(f"descend.recipes.{name.replace('-', '_')}"))
    config = type(recipes.get(name).model).__module__
    own = model_files(reached(config if config.startswith(MODELS) else f"{MODELS}bert"))
    for group in TOGETHER:
        own |= group if own & group else set()
    assert imported <= own, f"{name} imports {sorted(imported - own)} too"


def test_training_a_small_network_imports_little() -> None:
    """As a process really does it: the graph above is read from the source, this is not."""
    code = (
        "import sys; from descend import recipes; recipes.get('lenet-digits').build(); print(*sys.modules);"
        "import descend.verbs.train; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    built, whole = (set(line.split()) for line in done.stdout.splitlines())
    assert not whole & SLOW
    modules = {m for m in built if m.startswith("descend")}
    assert model_files(modules) == {"lenet"}
    compiled = {m for m in modules if m.startswith("descend.native.")} - {"descend.native.build"}
    assert not compiled
    assert not [m for m in modules if m.startswith(("descend.nn.attention", "descend.views"))]
    assert len(modules) <= MOST, f"{len(modules)} modules"


def test_the_graph_sees_an_import() -> None:
    assert "descend.errors" in graph()["descend.recipes"]
    assert "descend.models.vit" in reached("descend.models.deit")
    assert "descend.models.vit" not in reached("descend.kinds.start_from")
