"""The hooks: every Function and operator that is not torch's own tells of its calls, and nothing else changes."""

from __future__ import annotations

import contextlib
import inspect
import linecache
import os
import re
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd.function import FunctionMeta, _SingleLevelFunction

from gradspec._engine._turn import RUNS
from gradspec._scope import Scope
from gradspec._watch._kept import is_finite
from gradspec._watch._methods import function_in, giver, is_class_of_torch, is_told, put, put_back, take_out, to_hook
from gradspec._watch._seen import Seen
from gradspec._watch._traced import traced
from gradspec._watch._uses import BEGAN_IN, MAIN, Use, is_of_torch
from gradspec._watch._variant import variant_of
from gradspec._watch._wrapping import telling

#: The namespaces of torch's own operators, in torch 2.11 to 2.15.
OF_TORCH = frozenset(
    (
        *("aten", "c10d", "c10d_functional", "debug_mode_ops", "debugprims", "export", "flex_lib", "fsdp"),
        *("higher_order", "inductor", "inductor_prims", "mkl", "mkldnn", "mkldnn_prepacked", "onednn", "onnx"),
        *("onnx_symbolic", "prim", "prims", "profiler", "quantization", "quantized", "quantized_decomposed"),
        *("rngprims", "sparse", "static_runtime", "streams", "symm_mem", "torchbind"),
    )
)


#: How many classes that one place makes with other values are told apart: it may make one for each call.
VARIANTS = 8
#: What decides how a class is hooked, and is looked at again once the program assigns it.
METHODS = frozenset(("forward", "setup_context", "backward", "vjp"))
#: How torch.library names the Function that it makes of an operator.
GENERATED = "GeneratedBackwardFor_"


class Watcher:
    """Records the functions that run between `start` and `stop`.

    Args:
        on_new: called with a function when its record must be written again.
        at: a number of calls at which it is called, too.
        scopes: what the audit of each asks about; if empty, training and what the program uses.
    """

    def __init__(
        self, on_new: Callable[[Seen], None] | None = None, *, at: int = 0, scopes: tuple[Scope, ...] = ()
    ) -> None:
        self._at, self._scopes = at, scopes
        self.functions: dict[str, Seen] = {}
        #: What a hook itself raised: the program goes on without a word, and the report says it.
        self.troubles: dict[str, None] = {}
        self._on_new = on_new
        self._by_target: dict[Any, Seen] = {}
        self._undo: list[Callable[[], None]] = []
        self._lock = threading.RLock()
        self._busy = _Busy()

    def start(self) -> None:
        """Put the hooks in place."""
        self._busy = _Busy()
        self._hook_later_classes()
        for cls in list(_subclasses(_SingleLevelFunction)):
            self._hook_class(cls)
        for kind in (OpOverload, OpOverloadPacket):
            self._hook_operators(kind)
        self._hook_dynamo()

    def stop(self) -> None:
        """Take all hooks out; one that the program holds tells nothing any more."""
        self._busy = _Busy(now=True)
        while self._undo:
            self._undo.pop()()

    def forget(self) -> None:
        """Start again, as a child of the process that began."""
        self.functions, self._by_target, self._lock = {}, {}, threading.RLock()

    def _hook_later_classes(self) -> None:
        meta: Any = FunctionMeta
        init, assign, has_own = meta.__init__, meta.__setattr__, "__setattr__" in vars(meta)

        def told(cls: Any, *args: Any, **kwargs: Any) -> None:
            init(cls, *args, **kwargs)
            with self._quietly():
                self._hook_class(cls)

        def told_of_method(cls: Any, name: str, value: Any) -> None:
            assign(cls, name, value)
            if name in METHODS:
                with self._quietly():
                    self._hook_class(cls)

        meta.__init__, meta.__setattr__ = told, told_of_method
        self._undo.append(partial(setattr, meta, "__init__", init))
        self._undo.append(
            partial(setattr, meta, "__setattr__", assign) if has_own else partial(delattr, meta, "__setattr__")
        )

    def _hook_class(self, cls: Any) -> None:
        hooks: list[tuple[str, Callable[..., None]]]
        hooks = [("forward", self._forward), ("backward", self._backward), ("vjp", self._backward)]
        if is_class_of_torch(cls):
            hooks = [("backward", self._operator_backward)] if cls.__name__.startswith(GENERATED) else []
        for name, tell in hooks:
            held = to_hook(cls, name)
            function = function_in(held)
            if function is None or is_told(cls, held):
                continue
            of, is_inherited = weakref.ref(cls), name not in vars(cls)
            is_bound = isinstance(held, classmethod | MethodType)
            put(cls, name, held, telling(function, _before_bound(tell, of, name) if is_bound else _before(tell, of)))
            self._undo.append(partial(take_out if is_inherited else put_back, of, name))

    def _forward(self, of: weakref.ref[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        # Called as often as the function, as is `_backward`: a context manager would cost more than the rest.
        if self._busy.now or RUNS:
            return
        self._busy.now = True
        try:
            cls = of()
            if cls is None:
                return
            if cls.setup_context is _SingleLevelFunction.setup_context:
                if not args:
                    return
                called = getattr(type(args[0]), "_forward_cls", None)
                if not (isinstance(called, type) and issubclass(called, cls)):
                    return  # called by its name, and not through apply
                if called is not cls and giver(called, "forward") is not cls:
                    return  # called by the forward of a subclass
                cls, args = called, _given(args)
            seen = self._by_target.get(cls) or self._seen(cls)
            if seen.called(args, kwargs) and self._on_new:
                self._on_new(seen)
        except Exception as error:
            self._trouble(error)
        finally:
            self._busy.now = False

    def _backward(self, of: weakref.ref[Any], args: tuple[Any, ...], _: dict[str, Any]) -> None:
        if self._busy.now or RUNS:
            return
        self._busy.now = True
        try:
            cls = of()
            if cls is not None:
                called: Any = getattr(type(args[0]), "_forward_cls", None) if args else None
                is_own = isinstance(called, type) and issubclass(called, cls)
                if is_own and called is not cls and cls not in (giver(called, "backward"), giver(called, "vjp")):
                    return  # called by the backward of a subclass
                if isinstance(called, type) and not is_own and not is_class_of_torch(called):
                    return  # called by the backward of another class
                seen = self._by_target.get(called if is_own else cls) or self._seen(called if is_own else cls)
                # torch.func differentiates by classes that it makes itself, and always with a graph.
                seen.went_back(with_graph=is_own and torch.is_grad_enabled(), cotangents=args[1:] if is_own else ())
                if is_own and seen.is_looked_at and not seen.not_finite:
                    self._look_behind(seen, args[0], args[1:])
        except Exception as error:
            self._trouble(error)
        finally:
            self._busy.now = False

    def _look_behind(self, seen: Seen, node: Any, cotangents: tuple[Any, ...]) -> None:
        """Note whether what a backward pass is about to return is NaN or infinite, and what it is handed is not."""
        number = seen.backwards

        def look(gradients: tuple[Any, ...], _: object) -> None:
            try:
                handle.remove()  # the graph may be used again
                if not self._busy.now and not is_finite(gradients) and is_finite(cotangents):
                    seen.not_finite = seen.not_finite or number
            except Exception as error:
                self._trouble(error)

        handle = node.register_hook(look)

    def _operator_backward(self, of: weakref.ref[Any], args: tuple[Any, ...], _: dict[str, Any]) -> None:
        with self._quietly() as is_free:
            cls = of()
            if not is_free or cls is None or any(isinstance(arg, FakeTensor) for arg in args):
                return
            for seen in self.functions.values():
                if seen.is_operator and _generated(seen.target) == cls.__name__:
                    seen.went_back(with_graph=torch.is_grad_enabled())

    def _hook_operators(self, kind: Any) -> None:
        call = kind.__call__

        def told(operator: Any, /, *args: Any, **kwargs: Any) -> Any:
            name = operator._qualified_op_name if kind is OpOverloadPacket else operator._name
            namespace = name.partition("::")[0]
            if namespace not in OF_TORCH and not namespace.startswith("_"):
                self._operator(operator, args, kwargs)
            return call(operator, *args, **kwargs)

        kind.__call__ = told
        self._undo.append(partial(setattr, kind, "__call__", call))

    def _operator(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        with self._quietly() as is_free:
            if not is_free:
                return
            if isinstance(operator, OpOverloadPacket):
                names = operator.overloads()  # type: ignore[no-untyped-call]  # torch's own
                operator = getattr(operator, "default" if "default" in names else names[0])
            if not _takes_tensors(operator):
                return  # it has no gradient
            if self._seen(operator).called(args, kwargs) and self._on_new:
                self._on_new(self._seen(operator))

    def _hook_dynamo(self) -> None:
        import wrapt

        def hooked(module: Any) -> None:
            variable: Any = getattr(module, "AutogradFunctionVariable", None)
            call = getattr(variable, "call_apply", None)
            if call is None or not self._undo:
                return

            def call_apply(this: Any, tx: Any, args: Any, kwargs: Any) -> Any:
                with self._quietly():
                    seen = self._seen(this.fn_cls)
                    seen.uses.add(Use.EXPORT if torch.compiler.is_exporting() else Use.COMPILE)
                    seen.was_traced(f"({', '.join(map(_traced_word, args))}), traced", partial(traced, args))
                return call(this, tx, args, kwargs)

            variable.call_apply = call_apply
            self._undo.append(partial(setattr, variable, "call_apply", call))

        wrapt.register_post_import_hook(hooked, "torch._dynamo.variables.misc")

    def _seen(self, target: Any) -> Seen:
        with self._lock:  # two threads may call it first
            found = self._by_target.get(target)
            if found is None:
                is_operator = isinstance(target, OpOverload)
                key = _operator_key(target) if is_operator else f"{_module_of(target)}:{target.__qualname__}"
                where = _place(_home_of(target) if is_operator else target)
                of_place = [one for one in self.functions.values() if one.key == key and _is_at(one, where)]
                if not is_operator and (of_place or "<locals>" in target.__qualname__):
                    where += variant_of(target)
                if len(of_place) >= VARIANTS and all(one.where != where for one in of_place):
                    where = of_place[0].where
                found = next((one for one in self.functions.values() if (one.key, one.where) == (key, where)), None)
                if found is None:
                    name = key if key not in self.functions else f"{key} ({where})"
                    found = self.functions[name] = Seen(
                        key=key, target=target, is_operator=is_operator, where=where, at=self._at, scopes=self._scopes
                    )
                if len(self._by_target) < 10_000:  # a factory may make a class for each call
                    self._by_target[target] = found
        return found

    @contextlib.contextmanager
    def _quietly(self) -> Iterator[bool]:
        """Whether nothing of this thread is being noted already; whatever fails within is noted, and not raised."""
        if self._busy.now or RUNS:
            yield False
            return
        self._busy.now = True
        try:
            yield True
        except Exception as error:
            self._trouble(error)
        finally:
            self._busy.now = False

    def _trouble(self, error: Exception) -> None:
        self.troubles.setdefault(f"{type(error).__name__}: {error}")


class _Busy(threading.local):
    """Whether a call is being noted in this thread, or none is any more."""

    def __init__(self, *, now: bool = False) -> None:
        self.now = now


def _given(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments that `apply` was given, behind the ctx: without the defaults of forward.

    Backward returns as many gradients as there are.
    """
    return args[1 : 1 + len(args[0].needs_input_grad)]


def _before(tell: Callable[..., None], of: weakref.ref[Any]) -> Callable[[tuple[Any, ...], dict[str, Any]], None]:
    """Return what is told the arguments."""

    # A function, and no partial: Dynamo looks at what a function that it traces has in its closure.
    def before(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tell(of, args, kwargs)

    return before


def _before_bound(
    tell: Callable[..., None], of: weakref.ref[Any], name: str
) -> Callable[[tuple[Any, ...], dict[str, Any]], None]:
    """Return what is told the arguments of a classmethod, the first of which is the class that is called.

    That is the one that a call is of where it inherits the method: a common forward of many functions.
    """

    def before(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        is_inherited = isinstance(args[0], type) and giver(args[0], name) is of()
        tell(weakref.ref(args[0]) if is_inherited else of, args[1:], kwargs)

    return before


def _is_at(seen: Seen, place: str) -> bool:
    return seen.where == place or seen.where.startswith(f"{place}, ")


@cache
def _takes_tensors(operator: OpOverload) -> bool:
    return any("Tensor" in str(argument.type) for argument in operator._schema.arguments)


def _subclasses(cls: Any) -> Iterator[Any]:
    for one in type.__subclasses__(cls):
        yield one
        yield from _subclasses(one)


def _module_of(cls: Any) -> str:
    """Return the module of a class; of the program itself its file, as a command names it."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if cls.__module__ not in MAIN or not file or not Path(file).exists():
        return str(cls.__module__)
    relative = os.path.relpath(file, BEGAN_IN)
    return str(Path(BEGAN_IN, file)) if relative.startswith("..") else relative


def _generated(overload: Any) -> str:
    return f"{GENERATED}{overload._namespace}_{overload._opname}_{overload._overloadname}"


def _operator_key(overload: Any) -> str:
    name: str = overload._name
    return name.removesuffix(".default")


def _home_of(overload: Any) -> Any:
    """Return the Python function that an operator was made of; None for one in C++."""
    from torch._library.custom_ops import OPDEFS

    definition = OPDEFS.get(overload._name.partition(".")[0])
    made_of = getattr(definition, "_init_fn", None)
    if isinstance(made_of, FunctionType) and is_of_torch(made_of.__code__.co_filename):  # as triton_op makes one
        held = [cell.cell_contents for cell in made_of.__closure__ or ()]
        return next((one for one in held if isinstance(one, FunctionType)), made_of)
    return made_of


def _place(thing: Any) -> str:
    """Return the file and line of a definition, of a class that of its name."""
    name = getattr(thing, "__qualname__", "")
    is_class = isinstance(thing, type)
    if is_class:
        held = [getattr(one, "__func__", one) for one in (*thing.__dict__.values(), getattr(thing, "forward", None))]
        methods = [inspect.unwrap(one) for one in held if isinstance(one, FunctionType)]
        thing = next((one for one in methods if one.__qualname__.startswith(f"{name}.")), next(iter(methods), None))
    code = getattr(inspect.unwrap(thing), "__code__", None) if thing is not None else None
    if code is None:
        return ""
    line = code.co_firstlineno
    if is_class:
        written = re.compile(rf"\s*class {re.escape(name.rpartition('.')[2])}\b")
        lines = linecache.getlines(code.co_filename)[:line]
        line = next((k for k in range(len(lines), 0, -1) if written.match(lines[k - 1])), line)
    return f"{code.co_filename}:{line}"


def _traced_word(variable: Any) -> str:
    try:
        example = variable.as_proxy().node.meta["example_value"]
        return f"{str(example.dtype).removeprefix('torch.')}{[*map(str, example.shape)]}".replace("'", "")
    except Exception:
        return "..."
