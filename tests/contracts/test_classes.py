"""A change of equation is another module, never a boolean; and a method is overridden at most once.

Both are read from the source. A boolean that says whether a layer has a bias, as in `nn.Linear`, changes a size: its
name is `bias` or ends with it. Each other one is here with its reason, and leaves this list when it is gone.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.contracts.source import files, files_of

LAYOUT = "a field of the published config.json, for weights that exist in both forms"
BOOLEANS = {
    "models/beit.py BeitConfig.mask_token": LAYOUT,
    "models/beit.py BeitConfig.absolute": LAYOUT,
    "models/llama.py LlamaConfig.tied": LAYOUT,
    "models/unet_2d.py UNet2DConfig.cosine_first": LAYOUT,
    "models/unet_2d_condition.py UNet2DConditionConfig.cosine_first": LAYOUT,
    "models/unet_2d_condition.py UNet2DConditionConfig.linear": LAYOUT,
    "models/mistral.py MistralConfig.tied": LAYOUT,
    "models/t5.py T5Config.tied": LAYOUT,
    "models/vit_mae.py ViTMAEConfig.normalized": LAYOUT,
    "models/mobilenet_v1.py MobileNetV1Config.tf_padding": LAYOUT,
    "models/mobilenet_v2.py MobileNetV2Config.tf_padding": LAYOUT,
    "models/mobilenet_v2.py MobileNetV2Config.fine": LAYOUT,
    "models/resnet.py ResNetConfig.halve_first": LAYOUT,
    "models/resnet.py ResNetConfig.stride_first": LAYOUT,
    "models/vitdet.py VitDetConfig.absolute": LAYOUT,
    "models/vitdet.py VitDetConfig.relative": LAYOUT,
    "nn/decoding/cache.py Layer.causal": "what a mask would say, without writing one",
}
TWICE = {
    "models/beit.py BeitBlock.forward": "EncoderBlock is post-norm, PreNormBlock the other order, and this adds λ",
    "models/vit.py ViTBlock.forward": "EncoderBlock is post-norm, PreNormBlock the other order, and this skips rows",
    "models/big_bird.py ReleasedBigBird.mix": "the plan of transformers, for its weights only",
    "nn/attention/sliding_window.py GlobalWindow.forward": "its mask has three values, which the common check refuses",
    "tasks/sequence_to_sequence.py Translation.judge": "the tokens' perplexity, and BLEU of what is written",
}
FOLDERS = ("nn", "models", "tasks")


def booleans(path: str, tree: ast.AST) -> Iterator[str]:
    """Constructor parameters and fields of type bool that are no bias."""
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        taken: list[tuple[str, ast.expr | None]] = []
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                taken.append((part.target.id, part.annotation))
            if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                taken += [(arg.arg, arg.annotation) for arg in (*part.args.args, *part.args.kwonlyargs)]
        for name, hint in taken:
            if hint is not None and ast.unparse(hint) == "bool" and not name.endswith("bias"):
                yield f"{path} {node.name}.{name}"


def classes(trees: dict[str, ast.Module]) -> dict[str, tuple[str, ast.ClassDef]]:
    """Name -> (path, class), of names that only one class has."""
    found = [(path, node) for path, tree in trees.items() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    times = Counter(node.name for _, node in found)
    return {node.name: (path, node) for path, node in found if times[node.name] == 1}


def methods(node: ast.ClassDef) -> set[str]:
    """Those that do something: no abstract ones, and no __init__, which every class has of its own."""
    written = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name != "__init__"]
    return {part.name for part in written if not is_empty(part)}


def is_empty(function: ast.FunctionDef) -> bool:
    """A docstring, dots or a NotImplementedError: a promise that others keep."""
    body = [part for part in function.body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))]
    return not body or (isinstance(body[0], ast.Raise) and "NotImplementedError" in ast.unparse(body[0]))


def ancestors(node: ast.ClassDef, known: dict[str, tuple[str, ast.ClassDef]]) -> Iterator[ast.ClassDef]:
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0].rpartition(".")[2]
        if name in known and known[name][1] is not node:
            yield known[name][1]
            yield from ancestors(known[name][1], known)


def overridden_twice(trees: dict[str, ast.Module]) -> Iterator[str]:
    """Methods that two classes above have written already: to read one, three places must be read."""
    known = classes(trees)
    for path, node in known.values():
        above = [methods(ancestor) for ancestor in dict.fromkeys(ancestors(node, known))]
        for name in sorted(methods(node)):
            if sum(name in each for each in above) > 1:
                yield f"{path} {node.name}.{name}"


@pytest.mark.parametrize("folder", ["nn", "models"])
def test_no_boolean_changes_an_equation(folder: str) -> None:
    found = {name for path, tree in files_of(folder).items() for name in booleans(path, tree)}
    assert not found - set(BOOLEANS), "make these another module, or give a reason"
    gone = {name for name in BOOLEANS if name.startswith(f"{folder}/")} - found
    assert not gone, "these are gone: delete them from the list"


def test_no_method_is_overridden_twice() -> None:
    found = {name for name in overridden_twice(files()) if name.partition("/")[0] in FOLDERS}
    assert not found - set(TWICE), "three versions of one method: write the class on its own"
    assert not set(TWICE) - found, "these are gone: delete them from the list"


def test_the_rules_can_fail() -> None:
    layer = "class A:\n    def __init__(self, bias: bool, causal: bool): pass\n"
    assert list(booleans("nn/a.py", ast.parse(layer))) == ["nn/a.py A.causal"]
    assert list(booleans("models/a.py", ast.parse("class C:\n    tied: bool = False\n"))) == ["models/a.py C.tied"]
    body = "    def forward(self):\n        return 1\n"
    chain = f"class A:\n    def forward(self): ...\nclass B(A):\n{body}class C(B):\n{body}class D(C):\n{body}"
    assert list(overridden_twice({"nn/a.py": ast.parse(chain)})) == ["nn/a.py D.forward"]
