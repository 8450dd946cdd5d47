"""The command line: a table of verbs. Each verb is a file of `descend.verbs`, imported only when it is asked for."""

from __future__ import annotations

import gc
import io
import os
import sys
import textwrap
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import NamedTuple, TextIO

from descend.errors import Mistake, as_one_line, explain_limit, nearest


class Verb(NamedTuple):
    """A verb's name (and file), what it does, and how it is called."""

    name: str
    summary: str
    example: str


VERBS = {
    "make": (
        Verb("train", "train a model by a recipe", "descend train gpt2-pydoc --steps 200"),
        Verb("resume", "continue an interrupted run exactly where it stopped", "descend resume runs/demo"),
        Verb(
            "tune", "search for good values: learning rate, batch, width, ...", "descend tune lenet-digits --trials 20"
        ),
        Verb("scale", "a ladder of sizes: what would more compute give?", "descend scale gpt2-chars --budget 30m"),
        Verb("evaluate", "score a trained model on its test data", "descend evaluate runs/demo"),
        Verb("calibrate", "make a classifier as sure as it is right", "descend calibrate runs/demo"),
        Verb("predict", "ask a trained model about images, texts, a table", "descend predict runs/demo photo.png"),
        Verb("track", "follow the objects of a video", "descend track runs/demo video.mp4 --out tracked.mp4"),
        Verb("generate", "write text with a trained language model", 'descend generate runs/demo "The for statement"'),
        Verb("chat", "talk with a model that was taught by conversations", "descend chat runs/assistant"),
        Verb("serve", "trained models behind HTTP, by OpenAI's routes", "descend serve runs/demo"),
        Verb("play", "play episodes with a trained policy, filmed", "descend play runs/demo --out film.gif"),
        Verb("act", "let a trained policy move its arm", 'descend act runs/demo "pick red, place blue"'),
        Verb("prepare", "a corpus without copies and broken pages", "descend prepare pages.jsonl --out clean"),
        Verb("convert", "annotated images between COCO, YOLO and VOC", "descend convert coco/ new/ --to yolo"),
        Verb("compress", "make a trained model smaller: codes, zeros, a student", "descend compress runs/demo --int8"),
        Verb("merge", "an adapter worked into the weights of its base", "descend merge runs/lora-tasks merged/"),
        Verb("embed", "vectors of texts or images, and how alike they are", 'descend embed runs/demo "a cat" "a dog"'),
        Verb("export", "files for other programs", "descend export runs/demo --to onnx --out demo.onnx"),
        Verb("index", "make a folder of documents searchable", "descend index docs/ --out docs-index"),
        Verb("ask", "a question to indexed documents, with sources", 'descend ask docs-index "How do I resume?"'),
    ),
    "create": (
        Verb("sample", "draw new examples from a generative model", "descend sample runs/demo -n 16"),
        Verb("interpolate", "from one sample to another, step by step", "descend interpolate runs/demo --to 2"),
        Verb("edit", "change an image, or the masked part of it", "descend edit runs/demo photo.png --strength 0.5"),
        Verb("encode", "images as codes of a model", "descend encode runs/demo a.png --out codes.safetensors"),
        Verb("decode", "images of codes", "descend decode runs/demo codes.safetensors --out a.png"),
        Verb(
            "judge", "how near samples are to real images: FID, KID, recall", "descend judge runs/gan --by runs/lenet"
        ),
    ),
    "look": (
        Verb("plan", "what a recipe needs: data, parameters, memory, time", "descend plan gpt2-pydoc"),
        Verb("lr-find", "learning-rate finder: raise the rate, watch the loss", "descend lr-find lenet-digits"),
        Verb("runs", "list the runs and how they went", "descend runs"),
        Verb("diff", "two runs: what differs, and where their curves part", "descend diff runs/a runs/b"),
        Verb("studio", "all of this in the browser, on this machine", "descend studio"),
        Verb("inspect", "what is in a file of weights, a run or a folder", "descend inspect model.safetensors"),
        Verb("doctor", "what is wrong with a run, and what to change", "descend doctor runs/demo"),
    ),
    "learn": (
        Verb("find", "find an equation, a layer or a model by a few words", 'descend find "grouped query"'),
        Verb("explain", "equation, code, and the books' numbers recomputed now", "descend explain causal-mask"),
        Verb("trace", "a computation node by node, forward and backward", 'descend trace "sin(x*y)" --at x=1 --at y=2'),
        Verb("landscape", "the loss around a run's weights, as a picture", "descend landscape runs/demo"),
        Verb("layers", "a network layer by layer: shapes, parameters, FLOPs", "descend layers lenet"),
        Verb("lab", "test a claim by measurement: supported, refuted or open", "descend lab attention-scale"),
        Verb("reproduce", "train a published figure again, and compare", "descend reproduce gcn-karate"),
        Verb("coverage", "what is claimed and what is proven", "descend coverage"),
    ),
}
SHOWN = ("train",)  # whose examples stand on the first screen
LINES = {
    "train", "resume", "tune", "evaluate", "predict", "generate", "chat", "serve", "export", "ask", "sample",
    "studio", "plan", "runs", "diff", "doctor", "find", "explain", "trace", "lab", "reproduce", "coverage",
}  # verbs with a line of their own on the first screen; the others are named  # fmt: skip


def main(args: list[str] | None = None) -> int:
    """Run a verb. Exit codes: 0 done, 1 our mistake (a traceback), 2 the user's or a limit of the machine (one line),
    128 + n stopped by signal n (130: Ctrl-C)."""
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show √ shows ? instead of failing
    try:
        code = dispatch(sys.argv[1:] if args is None else args)
        sys.stdout.flush()
        return code
    except Mistake as mistake:
        return end(f"descend: {as_one_line(str(mistake))}", 2)
    except KeyboardInterrupt:
        return end("", 130)
    except BrokenPipeError:  # the reader has gone (`| head`)
        silence(sys.stdout)
        return 141
    except SystemExit as ended:  # rich's answer to a reader that has gone
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        silence(sys.stdout)
        return 141
    except (OSError, MemoryError, RuntimeError) as error:
        said = explain_limit(error)
        if not said:
            raise
        if isinstance(error, OSError) and error.filename is None:
            silence(sys.stdout)
        return end(f"descend: {as_one_line(said)}", 2)


def end(text: str, code: int) -> int:
    """The exit code, and the last line on the error stream, if anybody still reads it."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)
    return code


def silence(stream: TextIO) -> None:
    """Nothing more is written: Python would complain once more when it flushes at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def open_closed_streams() -> None:
    """Where a stream was closed (`>&-`), what is printed goes nowhere, and no file takes its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))


def dispatch(args: list[str]) -> int:
    if any("\0" in word for word in args):  # no shell can give one; Python code can
        raise Mistake("an argument holds a null character, which no file name and no text may have; take it out")
    if not args or args[0] in ("-h", "--help", "help"):
        print(format_screen())
        return 0
    if args[0] == "--version":
        from importlib.metadata import version

        print(f"descend {version('descend')}")
        return 0
    name, rest = args[0], args[1:]
    verbs = [verb.name for group in VERBS.values() for verb in group]
    if name not in verbs:
        raise Mistake(f"there is no verb {name!r}.{nearest(name, verbs)} descend --help lists the verbs")
    module = import_verb(name)
    # A verb whose flags depend on data (train: on the recipe) reads its arguments itself.
    read_own_flags = getattr(module, "main", None)
    if read_own_flags:
        read_own_flags(rest)
    else:
        from descend.verbs.flags import parse

        parse(module.command, rest, f"descend {name}")
    return 0


def import_verb(name: str) -> ModuleType:
    """A verb's file. A search for garbage among what is imported would take a sixth of the time and find none."""
    searches = gc.isenabled()
    gc.disable()
    try:
        return import_module(f"descend.verbs.{name.replace('-', '_')}")
    finally:
        if searches:
            gc.enable()


def format_screen() -> str:
    """The first screen: what descend is, its verbs, and how to begin."""
    lines = ["descend: deep learning, from the equation to the trained model."]
    for group, verbs in VERBS.items():
        lines += [group, *(f"  {verb.name:<11} {verb.summary}" for verb in verbs if verb.name in LINES)]
        others = ", ".join(verb.name for verb in verbs if verb.name not in LINES)
        lines += textwrap.wrap(f"and {others}", 80, initial_indent="  ", subsequent_indent="      ") if others else []
    examples = [f"  {verb.example}" for group in VERBS.values() for verb in group if verb.name in SHOWN]
    return "\n".join([*lines, *examples, "  descend VERB --help explains a verb and its flags"])
