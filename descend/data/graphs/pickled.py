"""Old pickles of arrays and lists, read without executing anything: no name in the file is ever imported.

A pickle is a program for a stack machine. This one knows the instructions that numpy and scipy wrote under Python 2
(protocol 2), and six names, which stand for plain values here:

    numpy.core.multiarray _reconstruct, numpy ndarray, numpy dtype      an array
    scipy.sparse.csr csr_matrix                                         a matrix in compressed rows
    collections defaultdict, __builtin__ list                           a dict

Anything else is a mistake that names the file and the byte.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
import scipy.sparse

from descend.data.reading import read_bytes, show
from descend.errors import Mistake

ARRAY, SHAPELESS, TYPE = "numpy ndarray", "numpy.core.multiarray _reconstruct", "numpy dtype"
MATRIX, TABLE, LIST = "scipy.sparse.csr csr_matrix", "collections defaultdict", "__builtin__ list"
NAMES = frozenset((ARRAY, SHAPELESS, TYPE, MATRIX, TABLE, LIST))
TYPES = frozenset(("b1", "i1", "u1", "i2", "i4", "i8", "f4", "f8"))
ORDERS = frozenset("<>|")
LONGEST_NAME = 100


class Name(str):
    """One of the six."""


class Made:
    """An object in the making: which of the names it is of, and what its state will be."""

    def __init__(self, name: str, code: str = ""):
        self.name, self.code, self.state = name, code, None

    state: Any


MARK = object()


def read_pickle(path: str | Path) -> Any:
    """Dicts, lists, numbers, bytes, numpy arrays, and scipy matrices in compressed rows."""
    return Machine(read_bytes(path), show(path)).run()


class Machine:
    """The stack, the memo, and the place in the file."""

    def __init__(self, data: bytes, where: str):
        self.data, self.where = data, where
        self.at = self.op = 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.step: dict[bytes, Callable[[], None]] = {
            b"\x80": self.check_protocol,
            b"c": self.push_name,
            b"q": lambda: self.keep(self.number("<B")),
            b"r": lambda: self.keep(self.number("<I")),
            b"h": lambda: self.recall(self.number("<B")),
            b"j": lambda: self.recall(self.number("<I")),
            b"(": lambda: self.stack.append(MARK),
            b"K": lambda: self.stack.append(self.number("<B")),
            b"M": lambda: self.stack.append(self.number("<H")),
            b"J": lambda: self.stack.append(self.number("<i")),
            b"U": lambda: self.stack.append(self.take(self.number("<B"))),
            b"T": lambda: self.stack.append(self.take(self.number("<i"))),
            b"N": lambda: self.stack.append(None),
            b"\x88": lambda: self.stack.append(True),
            b"\x89": lambda: self.stack.append(False),
            b")": lambda: self.stack.append(()),
            b"]": lambda: self.stack.append([]),
            b"}": lambda: self.stack.append({}),
            b"\x85": lambda: self.stack.append(tuple(self.pop(1))),
            b"\x86": lambda: self.stack.append(tuple(self.pop(2))),
            b"\x87": lambda: self.stack.append(tuple(self.pop(3))),
            b"t": lambda: self.stack.append(tuple(self.pop_marked())),
            b"a": lambda: self.extend(self.pop(1)),
            b"e": lambda: self.extend(self.pop_marked()),
            b"s": lambda: self.fill(self.pop(2)),
            b"u": lambda: self.fill(self.pop_marked()),
            b"R": self.reduce,
            b"\x81": self.make_matrix,
            b"b": self.build,
        }

    def run(self) -> Any:
        """The object of the whole file."""
        while True:
            self.op = self.at
            code = self.take(1)
            if code == b".":
                [value] = self.pop(1)
                if self.stack or self.at != len(self.data):
                    self.refuse("the file goes on after its end")
                return self.finish(value)
            if code not in self.step:
                self.refuse(f"instruction 0x{code[0]:02x} is none that a file of arrays and lists has; it is not run")
            self.step[code]()

    def refuse(self, why: str) -> NoReturn:
        raise Mistake(f"{self.where}, byte {self.op:,}: {why}; give the file as it was published")

    def take(self, n: int) -> bytes:
        if n < 0 or self.at + n > len(self.data):
            self.refuse("the file ends too early")
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, form: str) -> int:
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def pop(self, n: int) -> list[Any]:
        found = self.stack[len(self.stack) - n :] if len(self.stack) >= n else []
        if len(found) < n or any(item is MARK for item in found):
            self.refuse("the file is damaged: a value is missing")
        del self.stack[len(self.stack) - n :]
        return found

    def pop_marked(self) -> list[Any]:
        for place in range(len(self.stack) - 1, -1, -1):
            if self.stack[place] is MARK:
                found = self.stack[place + 1 :]
                del self.stack[place:]
                return found
        self.refuse("the file is damaged: a mark is missing")

    def keep(self, place: int) -> None:
        [value] = self.pop(1)
        self.stack.append(value)
        self.memo[place] = value

    def recall(self, place: int) -> None:
        if place not in self.memo:
            self.refuse(f"the file is damaged: it recalls value {place}, which it never kept")
        self.stack.append(self.memo[place])

    def check_protocol(self) -> None:
        if (found := self.number("<B")) != 2:
            self.refuse(f"protocol {found}, not 2 of Python 2")

    def push_name(self) -> None:
        """A name is looked up in a list; nothing is imported."""
        parts = self.data[self.at : self.at + LONGEST_NAME].split(b"\n", 2)
        if len(parts) < 3:
            self.refuse("a name without an end")
        self.at += len(parts[0]) + len(parts[1]) + 2
        name = b" ".join(parts[:2]).decode("latin1")
        if name not in NAMES:
            self.refuse(f"the name {name!r} is none that a file of arrays and lists has; it is not imported")
        self.stack.append(Name(name))

    def extend(self, values: list[Any]) -> None:
        if not self.stack or not isinstance(self.stack[-1], list):
            self.refuse("the file is damaged: values without a list")
        self.stack[-1].extend(values)

    def fill(self, values: list[Any]) -> None:
        if not self.stack or not isinstance(self.stack[-1], dict) or len(values) % 2:
            self.refuse("the file is damaged: entries without a dict")
        if not all(isinstance(key, int | bytes) for key in values[::2]):
            self.refuse("the file is damaged: a key is neither a number nor a text")
        self.stack[-1].update(zip(values[::2], values[1::2], strict=True))

    def reduce(self) -> None:
        name, taken = self.pop(2)
        if name == TABLE and taken == (LIST,):
            self.stack.append({})
        elif name == SHAPELESS and taken == (ARRAY, (0,), b"b"):
            self.stack.append(Made(ARRAY))
        elif name == TYPE and isinstance(taken, tuple) and taken and isinstance(taken[0], bytes):
            code = taken[0].decode("latin1")
            if code not in TYPES:
                self.refuse(f"numbers of type {code!r}; they must be one of {', '.join(sorted(TYPES))}")
            self.stack.append(Made(TYPE, code))
        else:
            self.refuse("a call that no file of arrays and lists has; it is not made")

    def make_matrix(self) -> None:
        if self.pop(2) != [MATRIX, ()]:
            self.refuse("an object that no file of arrays and lists has; it is not made")
        self.stack.append(Made(MATRIX))

    def build(self) -> None:
        made, state = self.pop(2)
        if not isinstance(made, Made):
            self.refuse("the file is damaged: a state without an object")
        made.state = self.make_array(state) if made.name == ARRAY else state
        if made.name == TYPE and not (isinstance(state, tuple) and len(state) > 1 and is_order(state[1])):
            self.refuse("the file is damaged: a type without the order of its bytes")
        self.stack.append(made)

    def make_array(self, state: Any) -> np.ndarray:
        """From (version, shape, type, whether columns come first, bytes)."""
        if not (isinstance(state, tuple) and len(state) == 5 and isinstance(state[4], bytes)):
            self.refuse("the file is damaged: the state of an array has five parts, the last its bytes")
        _, shape, kind, columns_first, content = state
        if not (isinstance(kind, Made) and kind.name == TYPE and kind.state):
            self.refuse("the file is damaged: an array without a type")
        if not (isinstance(shape, tuple) and all(isinstance(k, int) and k >= 0 for k in shape)):
            self.refuse("the file is damaged: an array without a shape")
        form = np.dtype(kind.state[1].decode("latin1") + kind.code)
        if math.prod(shape) * form.itemsize != len(content):
            self.refuse(f"an array of {' × '.join(map(str, shape))} numbers does not have {len(content):,} bytes")
        order: Literal["F", "C"] = "F" if columns_first is True else "C"
        found = np.frombuffer(content, form).reshape(shape, order=order)
        return found.astype(form.newbyteorder("="))

    def finish(self, value: Any) -> Any:
        """Arrays and matrices for what was made of them."""
        if isinstance(value, Made) and value.name == ARRAY and value.state is not None:
            return value.state
        if isinstance(value, Made) and value.name == MATRIX and isinstance(value.state, dict):
            return self.make_rows(value.state)
        if isinstance(value, dict | list):
            return value
        self.refuse("the file holds neither an array, a matrix, a list nor a dict")

    def make_rows(self, state: dict[Any, Any]) -> scipy.sparse.csr_matrix:
        """A matrix whose columns and rows are where they say they are."""
        shape = state.get(b"_shape", state.get(b"shape"))
        parts = [state.get(key) for key in (b"data", b"indices", b"indptr")]
        arrays = [p.state for p in parts if isinstance(p, Made) and p.name == ARRAY and np.ndim(p.state) == 1]
        whole = isinstance(shape, tuple) and len(shape) == 2 and all(isinstance(k, int) and k >= 0 for k in shape)
        if not whole or shape is None or len(arrays) != 3:
            self.refuse("the file is damaged: a matrix needs a shape, data, indices and indptr")
        rows, columns = shape
        data, indices, starts = arrays
        steps = np.diff(starts)
        fits = len(starts) == rows + 1 and starts[0] == 0 and starts[-1] == len(indices) == len(data)
        if not fits or (steps < 0).any() or (len(indices) and not 0 <= indices.min() <= indices.max() < columns):
            self.refuse(f"the file is damaged: entries outside the {rows} × {columns} matrix")
        return scipy.sparse.csr_matrix((data, indices, starts), (rows, columns))


def is_order(value: Any) -> bool:
    return isinstance(value, bytes) and value.decode("latin1") in ORDERS
