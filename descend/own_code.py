"""Code of the user's own: the file of a recipe, of a config, of a model that is not part of descend.

A class of it is stored as "module:Class", what a script defines by the script's file name. When a run is opened again,
the module is imported by its name, from the path of Python or the current folder, and only if its source defines that
class; or the user names its file (`--code my_model.py`). A file in a run's folder is never executed: it may have come
with the run.
"""

from __future__ import annotations

import ast
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module, invalidate_caches
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from descend.errors import Mistake, nearest

MAIN = "__main__"
GUARD = f'if __name__ == "{MAIN}":'
GIVEN: list[ModuleType] = []
"""What the user named with --code or code=, the newest first. A notebook has no file: its classes are sought there."""
_IMPORTING: list[str] = []


def use_code(code: str | Path | ModuleType | None) -> None:
    """Take the classes of a run from this file or module; without one, nothing happens."""
    if code:
        GIVEN.insert(0, code if isinstance(code, ModuleType) else import_file(code))


def import_file(path: str | Path) -> ModuleType:
    """The module in a file of the user's, under the name that `import` would give it."""
    path = Path(path)
    if not path.is_file():
        raise Mistake(f"there is no file {path}")
    if path.suffix != ".py" or "." in path.stem:
        raise Mistake(f"{path} is not a module of Python; give a file such as my_model.py")
    file = path.resolve()
    if is_in_run(file):
        raise Mistake(f"{path} is in the folder of a run, where no code is executed; read it, then move it out")
    name, root = name_file(file)
    for there in (sys.modules[MAIN], sys.modules.get(name)):
        if there is not None and has_file(there, file):
            return there
    other = locate(name, list(sys.path))
    if name in sys.modules or name in sys.stdlib_module_names or (other and other.resolve() != file):
        raise Mistake(f"{path}: there is another module {name!r}; rename the file")
    if root not in sys.path:
        sys.path.append(root)
    invalidate_caches()
    with naming_line(file):
        return import_module(name)


def get_named(name: str) -> object:
    """What the user means by "my_package.my_net:MyConfig" or "my_net.py:MyConfig"."""
    home, _, symbol = name.rpartition(":")
    if home.endswith(".py"):
        module = import_file(home)
    else:
        file = locate(home, [*sys.path, os.getcwd()]) if home not in sys.modules else None
        if home not in sys.modules and file is None:
            raise Mistake(
                f"{name}: no module {home} is found from here; give its file: {home.split('.')[-1]}.py:{symbol}"
            )
        module = sys.modules[home] if file is None else import_found(home, file)
    if symbol not in vars(module):
        classes = [key for key, value in vars(module).items() if isinstance(value, type)]
        raise Mistake(f"{name}: {home} has no {symbol}.{nearest(symbol, classes)}")
    return vars(module)[symbol]


def name_file(file: Path) -> tuple[str, str]:
    """The dotted name of a file, and the folder that it is imported from: the first above that is no package."""
    names, folder = [file.stem], file.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    return ".".join(names), str(folder)


def is_in_run(file: Path) -> bool:
    """Whether a file lies in the folder of a run, or below."""
    return any((folder / "recipe.json").is_file() for folder in file.parents)


def has_file(module: ModuleType, file: Path) -> bool:
    own = getattr(module, "__file__", None)
    return own is not None and Path(own).resolve() == file


@contextmanager
def naming_line(file: Path) -> Iterator[None]:
    """Inside, an error of the user's code becomes a mistake with its file and line."""
    _IMPORTING.append(file.name)
    try:
        yield
    except Mistake:
        raise
    except SyntaxError as error:
        raise Mistake(f"{error.filename}:{error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if Path(frame.filename).resolve() == file] or frames
        raise Mistake(f"{own[-1].filename}:{own[-1].lineno}: {type(error).__name__}: {error}") from error
    finally:
        _IMPORTING.pop()


def refuse_while_importing(what: str) -> None:
    """A script that is imported for its classes must not start its work again."""
    if _IMPORTING:
        raise Mistake(f"{_IMPORTING[-1]} would {what} while it is imported; put that under {GUARD}")


def name_main() -> str:
    """What a script is called when it is imported: its module or file; `__main__` in a notebook or at a prompt."""
    main = sys.modules[MAIN]
    spec, file = getattr(main, "__spec__", None), Path(getattr(main, "__file__", None) or "")
    return spec.name if spec is not None else file.stem if file.suffix == ".py" else MAIN


def store_name(kind: type) -> str:
    """How a class of the user's is stored: "module:Class"."""
    if "." in kind.__qualname__:
        raise Mistake(
            f"{kind.__qualname__}: no run finds a class again that is defined in a function or class; move it out"
        )
    return f"{name_main() if kind.__module__ == MAIN else kind.__module__}:{kind.__qualname__}"


def find_own(stored: str, where: str) -> object:
    """What "module:Class" means, as the file `where` says. A module that does not define the class is not imported."""
    name, _, symbol = stored.rpartition(":")
    for module in [m for m in GIVEN if name == MAIN or m.__name__.rpartition(".")[2] == name.rpartition(".")[2]]:
        if symbol in vars(module):
            return vars(module)[symbol]
    if name in (MAIN, name_main()):
        return get_from_main(name, symbol, where)
    if name not in sys.modules:
        import_located(name, symbol, where)
    return getattr(sys.modules[name], symbol, None)


def get_from_main(name: str, symbol: str, where: str) -> object:
    """A class of the script, notebook or prompt that is running."""
    found = vars(sys.modules[MAIN]).get(symbol)
    if found is None and name == MAIN:
        raise Mistake(
            f"{where}: {symbol} was defined in a notebook or at a prompt; define it there again before this, or put it"
            " into a file and give --code FILE (in Python: descend.load(RUN, code=FILE))"
        )
    return found


def import_located(name: str, symbol: str, where: str) -> None:
    """Import a module by its name, once it is known to define the class."""
    file = locate(name, [*sys.path, os.getcwd()])
    fix = f"give --code {name.rpartition('.')[2]}.py (in Python: import {name} before)"
    if file is None:
        raise Mistake(f"{where}: class {name}:{symbol} is not part of descend, and no module {name} is found; {fix}")
    if Path(where).is_file() and file.resolve().is_relative_to(Path(where).resolve().parent):
        raise Mistake(f"{where}: {file} lies beside it, where no code is executed; read it, move it out, and {fix}")
    if not defines(file, symbol):
        raise Mistake(f"{where}: {file} does not define a dataclass {symbol}; {fix}")
    import_found(name, file)


def import_found(name: str, file: Path) -> ModuleType:
    """Import a module whose file was located."""
    if is_in_run(file.resolve()):
        raise Mistake(f"{file} is in the folder of a run, where no code is executed; read it, then move it out")
    root = str(file.absolute().parents[name.count(".") + (file.name == "__init__.py")])
    if root not in map(os.path.abspath, sys.path):
        sys.path.append(root)
    invalidate_caches()
    with naming_line(file.resolve()):
        return import_module(name)


def locate(name: str, folders: list[str]) -> Path | None:
    """The source file of a module, found as `import` finds it, with nothing executed."""
    parts, file = name.split("."), None
    for depth in range(len(parts)):
        try:
            spec = PathFinder.find_spec(".".join(parts[: depth + 1]), folders)
            folders = list(spec.submodule_search_locations or ()) if spec else []
        except (ImportError, KeyError, ValueError):
            return None
        file = spec.origin if spec else None
    return Path(file) if file and file.endswith(".py") else None


def defines(file: Path, symbol: str) -> bool:
    """Whether the source of a file has a dataclass of this name."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == symbol]
    return any("dataclass" in ast.unparse(mark) for node in classes for mark in node.decorator_list)
