"""What can be found besides the systems: labs, recipes, verbs and their flags, read from the source, never imported.

A flag of a recipe is a field with a docstring: `patience` of `engine/loop.py` is `--patience`, `warmup` of a schedule
is `--schedule.warmup`. `spec/flags.tsv` adds what people call them (flag, words).
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from descend.catalog.claims import PACKAGE
from descend.catalog.search import EXACT, match, squeeze, stem_words
from descend.catalog.source import definitions, parse
from descend.catalog.systems import SPEC

# What a query may ask for by its kind: "early stopping flag".
KINDS = {"flag": "flag", "option": "flag", "setting": "flag", "argument": "flag", "lab": "lab", "experiment": "lab"}
KINDS |= {"recipe": "recipe", "verb": "verb", "command": "verb"}
# Where the values of a recipe are defined, and what their flags begin with: of every recipe, and of its data and model.
SHARED = {
    "engine/loop.py": "--",
    "optim/rules.py": "--optim.",
    "optim/schedules.py": "--schedule.",
    "kinds/start_from.py": "--start.",
}
PARTICULAR = {"data": "--data.", "models": "--model."}


@dataclass(frozen=True)
class Thing:
    """A lab, recipe, verb or flag: what it does, where it is defined, and how it is called."""

    kind: str
    name: str
    text: str
    at: str
    call: str
    words: str = ""


@cache
def things() -> tuple[Thing, ...]:
    """The labs, recipes and verbs, and the flags that every recipe has or that people have names for."""
    files = (*list_files("labs", "lab", "lab"), *list_files("recipes", "recipe", "train"), *list_verbs())
    flags = tuple(list_fields(SHARED))
    seen = {thing.name for thing in (*files, *flags)}
    named = (Thing("flag", f, words, "", f"descend train RECIPE {f}", words) for f, words in known_words().items())
    return (*files, *flags, *(flag for flag in named if flag.name not in seen))


@cache
def flags() -> tuple[Thing, ...]:
    """Every documented flag; that means to read all data and models, which takes a second."""
    own = tuple(thing for thing in things() if thing.kind == "flag" and thing.at)
    return (*own, *list_fields(PARTICULAR))


def list_files(folder: str, kind: str, verb: str) -> Iterator[Thing]:
    """Labs and recipes: a file each, called by its name."""
    for path in sorted((PACKAGE / folder).glob("[!_]*.py")):
        name, place = path.stem.replace("_", "-"), f"{PACKAGE.name}/{folder}/{path.name}"
        docstring = path.read_text(encoding="utf-8").split('"""', 2)[1]
        text = docstring.split("\n\n")[0].replace("\n", " ").strip().removeprefix(f"{name}: ")
        yield Thing(kind, name, text, f"{place}:1", f"descend {verb} {name}")


def list_verbs() -> Iterator[Thing]:
    """A verb is a file with `command`, whose named arguments are its flags, or with `main`, where a class has them."""
    for path in sorted((PACKAGE / "verbs").glob("[!_]*.py")):
        place, name = f"{PACKAGE.name}/verbs/{path.name}", path.stem.replace("_", "-")
        tree = parse(place)
        defined = definitions(tree)
        # Where the flags depend on the recipe, the function of the verb's own name says what it does.
        said = defined.get("command") or (defined.get(path.stem) if "main" in defined else None)
        if not isinstance(said, ast.FunctionDef):
            continue
        text = ast.get_docstring(said) or ""
        about = text.split("\n\n")[0].replace("\n", " ")
        yield Thing("verb", name, about, f"{place}:{said.lineno}", f"descend {name} --help")
        told = dict(re.findall(r"^    (\w+): (.+)$", text, re.MULTILINE))
        own = [(a.arg, told.get(a.arg, ""), a.lineno) for a in said.args.kwonlyargs if said.name == "command"]
        for field, sentence, line in own or documented_fields(tree):
            flag = f"--{field.replace('_', '-')}"
            yield Thing(
                "flag", flag, sentence, f"{place}:{line}", f"descend {name} ... {flag}", known_words().get(flag, "")
            )


def list_fields(folders: dict[str, str]) -> Iterator[Thing]:
    """The documented values of recipes; one line for a flag that several classes have."""
    seen = set()
    for start, prefix in folders.items():
        place = PACKAGE / start
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            where = path.relative_to(PACKAGE.parent).as_posix()
            for name, text, line in documented_fields(parse(where)):
                flag = prefix + name.replace("_", "-")
                if flag not in seen:
                    seen.add(flag)
                    words = known_words().get(flag, "")
                    said = text or words
                    yield Thing("flag", flag, said, f"{where}:{line}", f"descend train RECIPE {flag}", words)


def documented_fields(tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    """The fields of the file's frozen dataclasses that have a docstring, or a name that `flags.tsv` explains."""
    for node in definitions(tree).values():
        if not isinstance(node, ast.ClassDef) or "dataclass" not in ast.unparse(ast.List(node.decorator_list)):
            continue
        for field, after in zip(node.body, [*node.body[1:], None], strict=True):
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            said = after.value if isinstance(after, ast.Expr) else None
            text = said.value if isinstance(said, ast.Constant) and isinstance(said.value, str) else ""
            if text or any(flag.endswith(f".{field.target.id.replace('_', '-')}") for flag in known_words()):
                yield field.target.id, " ".join(text.split()), field.lineno


@cache
def known_words() -> dict[str, str]:
    """flag -> what people call it."""
    with (SPEC / "flags.tsv").open(encoding="utf-8", newline="") as file:
        return {r["flag"]: r["words"] for r in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}


def split_kind(text: str) -> tuple[str, str]:
    """The kind that a query asks for ("" for any), and the rest: "early stopping flag" -> flag, early stopping."""
    words = text.split()
    kinds = [KINDS[w] for w in (word.lower().removesuffix("s") for word in words) if w in KINDS]
    rest = [word for word in words if word.lower().removesuffix("s") not in KINDS]
    return (kinds[0], " ".join(rest)) if kinds and rest else ("", text)


def search_things(text: str, kind: str = "", limit: int = 5) -> list[Thing]:
    """Those that have all the words, best first: in the name, in what people call it, in what it does."""
    words = list(dict.fromkeys(stem_words(text)))
    rated = []
    for order, thing in enumerate(flags() if kind == "flag" else things()):
        if kind and thing.kind != kind:
            continue
        fields = [(10.0, thing.name), (8.0, thing.words), (3.0, thing.text)]
        known = [(weight, frozenset(stem_words(said))) for weight, said in fields if said]
        best = [max(weight * match(word, stems) for weight, stems in known) for word in words]
        if words and min(best) >= 3.0 * EXACT:
            # What is called so; a flag that several verbs have is shown for training.
            other, elsewhere = squeeze(thing.name) != squeeze(text), "train" not in thing.call
            rated.append((other, -sum(best), elsewhere, len(thing.name), order, thing))
    first: dict[str, Thing] = {}
    for *_, thing in sorted(rated, key=lambda r: r[:-1]):
        first.setdefault(thing.name, thing)
    return list(first.values())[:limit]
