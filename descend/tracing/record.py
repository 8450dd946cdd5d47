"""Record what a function really does: every torch call it makes, in order, as a `Program`.

torch's own hook (`TorchFunctionMode`) sees each call with its tensors. A call that raised the version of a tensor wrote
to it: the tensor, and every view of the same storage that is read later, becomes a new value. Random calls keep the
random state they drew from. An `autograd.Function` of the user's is not seen by that hook; while recording, its `apply`
is replaced by one that is. Names come from the module's parameters and the function's own local variables.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from descend.errors import Mistake
from descend.tracing.naming import VIEWS, format_call, name_inputs, name_operation, spell_arguments
from descend.tracing.program import Program, TraceNode, make_overwrite, make_pure, number_positions

REFUSED = (torch.autograd.grad, torch.autograd.backward, Tensor.backward)


class Recorder(TorchFunctionMode):
    """The nodes so far, and which node each tensor is now."""

    def __init__(self, names: dict[int, str]):
        super().__init__()
        self.nodes: list[TraceNode] = []
        self.names = names  # of parameters and buffers, by id
        self.now: dict[int, int] = {}  # id of a tensor -> its node
        self.held: dict[int, Tensor] = {}  # keeps the tensors alive, so that no id is used twice
        self.late: dict[
            int, list[tuple[int, Tensor]]
        ] = {}  # id of a view -> (node, positions) written since it was read
        self.origin: dict[int, int] = {}  # id of a leaf -> its first node
        self.modules: list[str] = []
        self.calls = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.call(func, args, kwargs or {}, name_operation(func))

    def call(self, func: Callable[..., Any], args: Any, kwargs: Any, op: str) -> Any:
        """Run the call and note what it made and what it wrote."""
        tensors = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        if func in REFUSED:
            raise Mistake(f"trace: the function calls {op}; trace the function that it differentiates")
        if op.startswith("get:") and op not in VIEWS:
            return func(*args, **kwargs)  # shape, dtype and the like
        parents = [self.node(x) for x in tensors]
        versions, state = [x._version for x in tensors], torch.get_rng_state()
        result = func(*args, **kwargs)
        drawn = state if not torch.equal(state, torch.get_rng_state()) else None
        written = {i for i, x in enumerate(tensors) if x._version != versions[i]}
        known = {id(x) for x in tensors}
        op = op.removeprefix("get:")
        form = format_call(op, spell_arguments(args, kwargs))
        made = [x for x in pytree.tree_leaves(result) if isinstance(x, Tensor)]
        for slot, y in enumerate(made):
            if id(y) not in known:
                which = f"{form}[{slot}]" if len(made) > 1 else form
                self.add(y, op, parents, make_pure(func, args, kwargs, written, slot, drawn), form=which)
        for i in written:
            if id(tensors[i]) in known:
                known.discard(id(tensors[i]))
                run = make_pure(func, args, kwargs, written, -1 - i, drawn)
                self.alone(tensors, i, op, run, parents)
                self.write(tensors[i], op, parents, run, form)
        return result

    def add(
        self, y: Tensor, op: str, parents: Sequence[int], run: Callable[..., Tensor], name: str = "", form: str = ""
    ) -> int:
        """A value that an operation has made."""
        if y.is_complex():
            raise Mistake(f"trace: {op} makes complex numbers; a trace differentiates real ones only")
        self.calls += 1
        frozen = not torch.is_grad_enabled()
        node = TraceNode(
            len(self.nodes),
            "operation",
            name or f"v{self.calls}",
            op,
            y.detach().clone(),
            tuple(parents),
            run,
            form or format_call(op, ["{}"] * len(parents)),
            self.modules[-1] if self.modules else "",
            frozen,
        )
        return self.place(y, node)

    def leaf(self, x: Tensor, kind: str, name: str) -> int:
        self.origin[id(x)] = len(self.nodes)
        return self.place(x, TraceNode(len(self.nodes), kind, name, kind, x.detach().clone()))

    def place(self, x: Tensor, node: TraceNode) -> int:
        self.nodes.append(node)
        self.now[id(x)], self.held[id(x)] = node.index, x
        return node.index

    def node(self, x: Tensor) -> int:
        """The node that a tensor is now; a tensor never seen before is a leaf."""
        if id(x) not in self.now:
            kind = "parameter" if x.requires_grad else "constant"
            return self.leaf(x, kind, self.names.get(id(x)) or f"{kind[0]}{len(self.nodes) + 1}")
        if writes := self.late.pop(id(x), None):
            size = x.untyped_storage().nbytes() // x.element_size()
            run = make_overwrite(number_positions(x), [place for _, place in writes], size)
            old = self.nodes[self.now[id(x)]]
            self.add(x, "overwritten", [old.index, *(index for index, _ in writes)], run, f"{old.name}′")
        return self.now[id(x)]

    def alone(self, tensors: Sequence[Tensor], i: int, op: str, run: Callable[..., Tensor], parents: list[int]) -> None:
        """Refuse a call that reads what it has already written: its result is an accident of the order in memory."""
        x = tensors[i]
        if any(u is not x and share_storage(u, x) for u in tensors):
            with torch.no_grad():
                again = run(*(self.nodes[parent].value for parent in parents))
            if not torch.allclose(again, x, rtol=1e-4, atol=1e-6, equal_nan=True):
                raise Mistake(f"trace: {op} reads memory that it writes to; give it a clone() of the argument")

    def write(self, x: Tensor, op: str, parents: Sequence[int], run: Callable[..., Tensor], form: str) -> None:
        """A tensor that an operation has written to, and the views that see it."""
        index = self.add(x, op, parents, run, form=form)
        for u in [u for u in self.held.values() if u is not x and share_storage(u, x)]:
            if u.dtype != x.dtype:
                raise Mistake(f"trace: {op} writes to a storage that is also read as {u.dtype}; copy it first")
            self.late.setdefault(id(u), []).append((index, number_positions(x)))


def share_storage(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors lie in one storage."""
    start = a.untyped_storage().data_ptr()
    return start != 0 and start == b.untyped_storage().data_ptr()


@contextmanager
def record_functions(recorder: Recorder) -> Iterator[None]:
    """Let the recorder see `autograd.Function.apply`, as one operation."""
    kept = torch.autograd.Function.__dict__["apply"]

    def apply(cls: type, *args: Any, **kwargs: Any) -> Any:
        def run(*again: Any, **named: Any) -> Any:
            return kept.__func__(cls, *again, **named)

        with torch._C.DisableTorchFunction():  # neither what it does inside is recorded, nor what the recorder does
            return recorder.call(run, args, kwargs, cls.__name__)

    torch.autograd.Function.apply = classmethod(apply)  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        torch.autograd.Function.apply = kept  # type: ignore[method-assign]


@contextmanager
def record_modules(recorder: Recorder, names: dict[int, str]) -> Iterator[None]:
    """Let the recorder know in which module a call is made."""

    def enter(module: nn.Module, _: Any) -> None:
        recorder.modules.append(names.get(id(module), type(module).__name__))

    def leave(module: nn.Module, _: Any, __: Any) -> None:
        recorder.modules.pop()

    handles = [register_module_forward_pre_hook(enter), register_module_forward_hook(leave)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def watch_locals(code: Any, found: dict[str, Any]) -> Iterator[None]:
    """The local variables that a function has when it returns."""

    def look(frame: Any, event: str, _: Any) -> None:
        if event == "return" and frame.f_code is code:
            found.update(frame.f_locals)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(before)


def record(
    fn: Callable[..., Any],
    inputs: Sequence[Any],
    choose: Callable[[Any], Tensor],
    title: str = "",
    module: nn.Module | None = None,
) -> Program:
    """Run fn on the inputs; `choose` takes what it returns to a single number. Parameters have the module's names."""
    module = module or (fn if isinstance(fn, nn.Module) else getattr(fn, "__self__", None))
    known = dict(module.named_modules()) if isinstance(module, nn.Module) else {}
    tensors = [*module.named_parameters(), *module.named_buffers()] if isinstance(module, nn.Module) else []
    if any(nn.parameter.is_lazy(x) for _, x in tensors):
        raise Mistake("trace: the module has lazy parameters without a shape yet; call it once before")
    recorder = Recorder({id(x): name for name, x in tensors})
    leaves = [x.detach().clone().requires_grad_() if is_differentiable(x) else x for x in inputs]
    # A leaf that requires a gradient cannot be written to, but the function may write to its input: it gets a copy.
    given = [x.clone() if is_differentiable(x) else x for x in leaves]
    for x, name in zip(given, name_inputs(fn, len(given)), strict=True):
        if isinstance(x, Tensor):
            recorder.leaf(x, "input", name)
    found: dict[str, Any] = {}
    body = fn.forward if isinstance(fn, nn.Module) else fn
    with ExitStack() as stack:
        stack.enter_context(torch.enable_grad())
        stack.enter_context(record_modules(recorder, {id(m): name for name, m in known.items() if name}))
        stack.enter_context(record_functions(recorder))
        stack.enter_context(watch_locals(getattr(body, "__code__", None), found))
        stack.enter_context(recorder)
        y = choose(fn(*given))
    found |= getattr(fn, "names", {})
    entry = recorder.node(y)
    rename(recorder, found)
    return finish(recorder, entry, y, {id(x): leaf for x, leaf in zip(given, leaves, strict=True)}, title)


def is_differentiable(x: Any) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point()


def rename(recorder: Recorder, found: dict[str, Any]) -> None:
    """Give results the names of the variables that hold them."""
    taken = {node.name for node in recorder.nodes}
    for name, x in found.items():
        if isinstance(x, Tensor) and id(x) in recorder.now and id(x) not in recorder.late:
            node = recorder.nodes[recorder.now[id(x)]]
            if node.kind == "operation" and name not in taken:
                node.name = name
                taken.add(name)


def finish(recorder: Recorder, entry: int, y: Tensor, inputs: dict[int, Tensor], title: str) -> Program:
    """Leave out what does not reach the output, number the rest, and add autograd's own gradients."""
    reach = {entry}
    for node in reversed(recorder.nodes):
        if node.index in reach:
            reach.update(node.parents)
    kept = [n for n in recorder.nodes if n.index in reach or n.kind == "input"]
    place = {node.index: i for i, node in enumerate(kept)}
    skipped = sum(n.kind == "operation" for n in recorder.nodes) - sum(n.kind == "operation" for n in kept)
    leaves = {index: inputs.get(i, recorder.held[i]) for i, index in recorder.origin.items() if index in place}
    sources = {place[index]: x for index, x in leaves.items() if x.is_leaf and x.requires_grad}
    if not y.requires_grad:
        names = ", ".join(n.name for n in kept if n.kind == "input")
        raise Mistake(f"trace: the result does not depend on anything differentiable ({names or 'no inputs'})")
    for node in kept:
        node.index, node.parents = place[node.index], tuple(place[p] for p in node.parents)
    program = Program(kept, place[entry], skipped, {}, title)
    try:
        gradients = torch.autograd.grad(y, list(sources.values()), allow_unused=True, materialize_grads=True)
        program.torch_gradients = dict(zip(sources, gradients, strict=True))
    except RuntimeError as error:  # a value that autograd saved was written to
        program.refused = str(error).partition(":")[0]
    return program
