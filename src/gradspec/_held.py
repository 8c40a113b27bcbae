"""The objects of a call that hold tensors of it: a module that is run, a bound method, a closure, a partial.

Forward of an adjoint or of a reversible block runs such an object, and is given the object's tensors as arguments too,
so that backward can return their gradients. Another value of such an argument is one of the call only if the object
holds it as well: `Holders` makes copies of just the objects on the way to these tensors, with other tensors in them.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import Tensor

#: How many objects are looked into; what is farther away is no part of the call.
MOST = 20_000
#: How many numbers a tensor has at most that is kept, to be as it was.
LARGE = 2**26
_OPAQUE = (
    *(type, ModuleType, BuiltinFunctionType, str, bytes, int, float, complex, type(None), weakref.ref),
    *(torch.dtype, torch.device, torch.Generator, torch.autograd.graph.Node, torch.jit.ScriptModule),
)


class Holders:
    """Which objects of a call hold its tensors, and a copy of the call with others in their places.

    Args:
        call: tensors and any objects in tuples, lists and dicts.
    """

    def __init__(self, call: Any) -> None:
        self._call = call
        #: The tensors of the call itself.
        self.given = tuple({id(t): t for t in _given(call)}.values())
        #: By the identity of a tensor that an object holds, that of the given tensor that it is.
        self._is = {id(t): id(t) for t in self.given}
        #: The objects that are copied, by their identity.
        self._holding: dict[int, Any] = {}
        #: The tensors that an object holds.
        self.held: tuple[Tensor, ...] = ()
        #: The identities of the given tensors that an object holds too.
        self.own: frozenset[int] = frozenset()
        self._scan()

    def _scan(self) -> None:
        aliases = {key: t for t in self.given if (key := _place(t)) is not None}
        parents: dict[int, list[Any]] = {}
        seen: dict[int, Any] = {id(self._call): self._call}
        direct, own, held = {id(self._call)}, set[int](), dict[int, Tensor]()
        holding = list[Any]()
        queue = [self._call]
        for value in queue:
            is_direct = id(value) in direct and isinstance(value, list | tuple | dict)
            for part in islice(_parts(value), max(0, MOST - len(seen))):
                if isinstance(part, Tensor):
                    if not is_direct:
                        held[id(part)] = part
                    theirs = part if id(part) in self._is else _same(part, aliases)
                    if theirs is None:
                        continue
                    seen[id(part)] = part
                    self._is[id(part)] = id(theirs)
                    holding.append(value)
                    if not is_direct:
                        own.add(id(theirs))
                elif not isinstance(part, _OPAQUE):
                    parents.setdefault(id(part), []).append(value)
                    if is_direct:
                        direct.add(id(part))
                    if id(part) not in seen:
                        seen[id(part)] = part
                        queue.append(part)
        for value in holding:  # grows: who holds a holder is one
            if id(value) not in self._holding:
                self._holding[id(value)] = value
                holding.extend(parents.get(id(value), ()))
        self.own, self.held = frozenset(own), tuple(held.values())
        self._seen = seen  # alive, so that nothing else has the identity of one of these

    @property
    def modules(self) -> tuple[torch.nn.Module, ...]:
        """The modules of the call, and those behind its objects."""
        return tuple(value for value in self._seen.values() if isinstance(value, torch.nn.Module))

    def each(self, change: Callable[[Tensor], Tensor]) -> Any:
        """Return the call with each of its tensors changed, also where an object holds it."""
        return self.renewing({id(t): change(t) for t in self.given})(self._call)

    def renewing(self, new: Mapping[int, Tensor]) -> Callable[[Any], Any]:
        """Return what copies a part of the call with other tensors.

        Args:
            new: what takes the place of a given tensor, by its identity.
        """
        return _Renewed(self._is, self._holding, new)


class _Renewed:
    """Copies what holds a tensor that is replaced, once; the rest stays as it is."""

    def __init__(self, same: Mapping[int, int], holding: Mapping[int, Any], new: Mapping[int, Tensor]) -> None:
        self._same, self._holding, self._new = same, holding, new
        self._copies: dict[int, Any] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self._new.get(self._same.get(id(value), 0), value)
        if id(value) not in self._holding:
            return value
        if id(value) not in self._copies:
            made = self._made(value)
            self._copies.setdefault(id(value), made)
        return self._copies[id(value)]

    def _made(self, value: Any) -> Any:
        made: Any
        if isinstance(value, tuple):
            items = [self(held) for held in value]
            return value._make(items) if hasattr(value, "_make") else tuple(items)
        if isinstance(value, MethodType):
            return MethodType(self(value.__func__), self(value.__self__))
        if isinstance(value, partial):
            named = {name: self(held) for name, held in value.keywords.items()}
            return type(value)(self(value.func), *map(self, value.args), **named)
        if isinstance(value, FunctionType):
            return self._function(value)
        # Each of these may hold itself by a way round: the copy is known before it is filled.
        if isinstance(value, list):
            self._copies[id(value)] = made = copy.copy(value)
            made[:] = [self(held) for held in value]
        elif isinstance(value, dict):
            self._copies[id(value)] = made = copy.copy(value)
            made |= {name: self(held) for name, held in value.items()}
        else:
            self._copies[id(value)] = made = object.__new__(type(value))
            if hasattr(value, "__dict__"):  # past what a class does where an attribute is set
                vars(made).update(vars(value))
                vars(made).update({name: self(held) for name, held in vars(value).items()})
            for name in _slots(value):
                object.__setattr__(made, name, self(getattr(value, name)))
        return made

    def _function(self, value: FunctionType) -> FunctionType:
        cells = [self._cell(cell) for cell in value.__closure__ or ()]
        scope = dict(value.__globals__)
        made = FunctionType(value.__code__, scope, value.__name__, None, tuple(cells))
        self._copies[id(value)] = made
        scope.update({name: self(held) for name, held in _read(value).items()})
        made.__dict__.update(value.__dict__)
        made.__qualname__, made.__module__, made.__doc__ = value.__qualname__, value.__module__, value.__doc__
        made.__defaults__ = value.__defaults__ and tuple(map(self, value.__defaults__))
        named = value.__kwdefaults__
        made.__kwdefaults__ = named and {name: self(held) for name, held in named.items()}
        for cell, theirs in zip(cells, value.__closure__ or (), strict=True):
            if cell is not theirs:
                (held,) = _content(theirs)
                cell.cell_contents = self(held)
        return made

    def _cell(self, cell: CellType) -> CellType:
        """Return a cell to be filled; itself if it holds no such tensor, as other functions share it."""
        is_new = any(id(held) in self._holding or id(held) in self._same for held in _content(cell))
        return self._copies.setdefault(id(cell), CellType()) if is_new else cell


def together(call: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return a call with each of its tensors changed, also where an object of the call holds it."""
    return Holders(call).each(change)


@contextmanager
def unmoved(calls: Iterable[Any]) -> Iterator[None]:
    """Give what the objects of calls hold, and their gradients, the values back that they have now.

    What has more numbers than `LARGE` is not kept.
    """
    held = {id(t): t for call in calls for t in Holders(call).held if t.layout == torch.strided and not t.is_meta}
    small = [t for t in held.values() if t.numel() <= LARGE]
    before = [(t, t.detach().clone(), t.grad, None if t.grad is None else t.grad.clone()) for t in small if t.is_leaf]
    try:
        yield
    finally:
        with torch.no_grad(), suppress(torch.AcceleratorError):  # of a device that is lost
            for tensor, value, grad, of_grad in before:
                if not _equal(tensor, value):
                    tensor.copy_(value)
                if grad is not None and of_grad is not None and not _equal(grad, of_grad):
                    grad.copy_(of_grad)
                tensor.grad = grad


def _equal(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())


def _given(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for held in value.values() if isinstance(value, dict) else value:
            yield from _given(held)


def _parts(value: Any) -> Iterator[Any]:
    """Yield what an object holds; nothing of one that a copy would not be like."""
    if isinstance(value, list):
        yield from value
    elif isinstance(value, tuple):
        if type(value) is tuple or hasattr(value, "_make"):
            yield from value
    elif isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, FunctionType):
        yield from (held for cell in value.__closure__ or () for held in _content(cell))
        yield from _read(value).values()
        yield from (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
    elif _is_plain(type(value)):
        yield from getattr(value, "__dict__", {}).values()
        yield from (getattr(value, name) for name in _slots(value))


def _is_plain(cls: type) -> bool:
    """Whether an object is its attributes: nothing ends with it, and no part of it is written in C."""
    own = [c for c in cls.__mro__ if c is not object]
    in_python = all(c.__flags__ & _HEAP for c in own) and getattr(cls, "__new__", None) == object.__new__
    return in_python and not hasattr(cls, "__del__")


#: The flag of a class that is defined in Python.
_HEAP = 1 << 9


def _slots(value: Any) -> Iterator[str]:
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            full = f"_{cls.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
            if full not in ("__dict__", "__weakref__") and hasattr(value, full):
                yield full


def _read(function: FunctionType) -> dict[str, Any]:
    """Return the globals that a function, or one inside it, names."""
    codes, found, scope = [function.__code__], dict[str, Any](), function.__globals__
    for code in codes:
        found |= {name: scope[name] for name in code.co_names if name in scope}
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return found


def _content(cell: CellType) -> Sequence[Any]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # the name has no value yet
        return ()


def _place(tensor: Tensor) -> Any:
    """Return where the numbers of a tensor are; None of one that has none in memory."""
    try:
        if tensor.numel() and tensor.layout == torch.strided and tensor.data_ptr():
            return (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())
    except Exception:  # it is traced, or batched by a transform
        return None
    return None


def _same(held: Tensor, aliases: Mapping[Any, Tensor]) -> Tensor | None:
    """Return the given tensor whose memory an object's tensor is; one that is cut off from it is a constant."""
    given = aliases.get(_place(held))
    return given if given is not None and (held.requires_grad or not given.requires_grad) else None
