"""descend: deep learning, from the equation to the trained model.

Every verb of the command line is a function here: `descend.train("gpt2-pydoc")`, `descend.load("runs/demo")`. Each is
imported when it is first used, so that `import descend` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from descend.models import load
    from descend.verbs.act import act
    from descend.verbs.ask import ask
    from descend.verbs.calibrate import calibrate
    from descend.verbs.chat import chat
    from descend.verbs.compress import compress
    from descend.verbs.convert import convert
    from descend.verbs.coverage import coverage
    from descend.verbs.decode import decode
    from descend.verbs.diff import diff
    from descend.verbs.doctor import doctor
    from descend.verbs.edit import edit
    from descend.verbs.embed import embed
    from descend.verbs.encode import encode
    from descend.verbs.evaluate import evaluate
    from descend.verbs.explain import explain
    from descend.verbs.export import export
    from descend.verbs.find import find
    from descend.verbs.generate import generate
    from descend.verbs.index import index
    from descend.verbs.inspect import inspect
    from descend.verbs.interpolate import interpolate
    from descend.verbs.judge import judge
    from descend.verbs.lab import lab
    from descend.verbs.landscape import landscape
    from descend.verbs.layers import layers
    from descend.verbs.lr_find import lr_find
    from descend.verbs.merge import merge
    from descend.verbs.plan import plan
    from descend.verbs.play import play
    from descend.verbs.predict import predict
    from descend.verbs.prepare import prepare
    from descend.verbs.reproduce import reproduce
    from descend.verbs.resume import resume
    from descend.verbs.runs import runs
    from descend.verbs.sample import sample
    from descend.verbs.scale import scale
    from descend.verbs.serve import serve
    from descend.verbs.studio import studio
    from descend.verbs.trace import trace
    from descend.verbs.track import track
    from descend.verbs.train import train
    from descend.verbs.tune import tune

__all__ = [
    "act",
    "ask",
    "calibrate",
    "chat",
    "compress",
    "convert",
    "coverage",
    "decode",
    "diff",
    "doctor",
    "edit",
    "embed",
    "encode",
    "evaluate",
    "explain",
    "export",
    "find",
    "generate",
    "index",
    "inspect",
    "interpolate",
    "judge",
    "lab",
    "landscape",
    "layers",
    "load",
    "lr_find",
    "merge",
    "plan",
    "play",
    "predict",
    "prepare",
    "reproduce",
    "resume",
    "runs",
    "sample",
    "scale",
    "serve",
    "studio",
    "trace",
    "track",
    "train",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("descend")
    if name not in __all__:
        raise AttributeError(f"module 'descend' has no attribute {name!r}")
    value = getattr(import_module("descend.models" if name == "load" else f"descend.verbs.{name}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "__version__"])
