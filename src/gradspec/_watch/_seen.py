"""The functions that a watch has seen, with counts, uses and a few calls of each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gradspec._scope import Scope
from gradspec._watch._kept import Kept, NotKeptError, is_there, kept, kind_of, look_of, shapes_of, text_of, values_of
from gradspec._watch._uses import MAIN, Use, seen_in_the_state, seen_on_the_stack

#: How many kinds of calls are kept of a function, and how many that differ only in their sizes, or in their values.
KINDS, SIZES, VALUES = 4, 2, 2
#: How often a call is copied to see if it shows more than one whose numbers are all equal.
TRIES = 16
#: From so many calls on, each sixteenth is looked at; and each whose number is a power of two.
FIRST, EACH = 1000, 16
#: How many looks of calls are remembered, that another of them is not looked at again.
LOOKS = 256


@dataclass
class Seen:
    """One function that the program calls."""

    #: "package.module:Name" of a Function, "namespace::name" of an operator.
    key: str
    #: The class, or the overload.
    target: Any
    is_operator: bool = False
    #: The file and line of its definition; empty where nobody knows.
    where: str = ""
    #: The scopes that its audit asks about; empty: training, and what the program uses.
    scopes: tuple[Scope, ...] = ()
    #: How often it was called, and its backward; what runs inside of compiled code is not counted.
    forwards: int = 0
    backwards: int = 0
    #: How often a compiler traced it.
    traced: int = 0
    uses: set[Use] = field(default_factory=set)
    #: The lines of the program that call it.
    lines: dict[str, None] = field(default_factory=dict)
    #: The kinds of calls, each as its first one.
    kinds: dict[Any, str] = field(default_factory=dict)
    kept: list[Kept] = field(default_factory=list)
    #: Calls of a kind that is kept, with other sizes.
    more: list[Kept] = field(default_factory=list)
    #: Calls of a kind and of sizes that are kept, with other values.
    other: list[Kept] = field(default_factory=list)
    #: The calls that a compiler has traced, with drawn numbers: all there is of a function that is called nowhere else.
    drawn: list[Kept] = field(default_factory=list)
    #: The outputs for which a backward pass had a cotangent that is not 0, and how many there are.
    outputs: set[int] = field(default_factory=set)
    most: int = 0
    #: The first backward pass that returned NaN or infinity for finite cotangents; 0 where none is known.
    not_finite: int = 0
    #: Why a call was not kept.
    not_kept: str = ""
    #: The place of each kind among what is kept, and how often a better call of it is looked for.
    _places: dict[Any, int] = field(default_factory=dict)
    _flat: dict[Any, int] = field(default_factory=dict)
    #: The number of the call at which it is told again, whatever the call is.
    at: int = 0
    _looks: set[Any] = field(default_factory=set)
    _forwards: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _backwards: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def package(self) -> str:
        """The package that it belongs to; of an operator its namespace."""
        if self.is_operator:
            return self.key.partition("::")[0]
        module = str(self.target.__module__).partition(".")[0]
        return "__main__" if module in MAIN else module

    def called(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """Note a call; return whether the record of the function must be written again."""
        number = self.forwards = next(self._forwards)
        is_power = number & (number - 1) == 0
        look = None
        is_often = number > EACH and number % EACH and not is_power and number != self.at
        if is_often and (number > FIRST or (look := look_of(args, kwargs)) in self._looks):
            return False
        self.uses |= seen_in_the_state()
        kind = (*map(kind_of, args), *((name, kind_of(held)) for name, held in kwargs.items()))
        is_new = kind not in self.kinds
        if is_new or is_power or number <= EACH:
            uses, line = seen_on_the_stack("" if self.is_operator else self.package)
            self.uses |= uses
            if line and len(self.lines) < KINDS:
                self.lines[line] = None
        if is_new and len(self.kinds) < 64:
            self.kinds[kind] = text_of(args, kwargs)
        is_kept = self._kept_of(kind, args, kwargs, is_new)
        if look is not None and kind not in self._flat and len(self._looks) < LOOKS:
            self._looks.add(look)
        return is_kept or (is_power and number > 1) or number == self.at

    def _kept_of(self, kind: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], is_new: bool) -> bool:
        """Keep a call, if it is one of a new kind or of other sizes, or shows more than the one that is kept."""
        if is_new and len(self.kept) < (KINDS if any(call.trains for call in self.kept) else 2 * KINDS):
            return self._keep(self.kept, args, kwargs, kind)
        if self._flat.get(kind, 0) > 0:  # none of its kind shows anything yet
            self._flat[kind] -= 1
            if self._keep(self.kept, args, kwargs, kind, instead=True):
                return True
        if not is_new and len(self.more) < SIZES and not any(call.is_cut for call in self.kept):
            sizes = tuple(map(shapes_of, args))
            if sizes not in [tuple(map(shapes_of, call.args)) for call in self.calls]:
                return self._keep(self.more, args, kwargs, kind)
        if not is_new and len(self.other) < VALUES and self._has_other_values(kind, args, kwargs):
            return self._keep(self.other, args, kwargs, kind)
        return False

    def _has_other_values(self, kind: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        if (place := self._places.get(kind)) is None:
            return False
        try:
            values = values_of((args, dict(kwargs)))
            same = [self.kept[place], *self.other]
            return values not in [values_of((call.args, dict(call.kwargs))) for call in same]
        except NotKeptError:
            return False

    def went_back(self, *, with_graph: bool, cotangents: tuple[Any, ...] = ()) -> None:
        """Note a backward pass, whether it makes a graph, to be differentiated again, and which outputs it is of."""
        number = self.backwards = next(self._backwards)
        if with_graph:
            self.uses.add(Use.HIGHER)
        if len(cotangents) > len(self.outputs) and (number <= EACH or number & (number - 1) == 0):
            self.outputs |= {place for place, one in enumerate(cotangents) if is_there(one)}
            self.most = max(self.most, len(cotangents))

    @property
    def is_looked_at(self) -> bool:
        """Whether the numbers of the backward pass that begins are looked at: of many passes one in some."""
        return self.backwards <= FIRST or not self.backwards % EACH

    @property
    def unused(self) -> tuple[int, ...]:
        """The outputs of which no backward pass had a cotangent, where others had one."""
        return tuple(sorted({*range(self.most)} - self.outputs)) if self.outputs else ()

    def was_traced(self, text: str, calls: Callable[[], list[Kept]]) -> None:
        """Note that a compiler has traced a call, which is made again with drawn numbers."""
        self.traced += 1
        self.kinds.setdefault(("traced", len(self.kinds)), text)
        if self.traced <= SIZES:
            try:
                self.drawn += calls()
            except NotKeptError as why:
                self.not_kept = str(why)

    @property
    def calls(self) -> list[Kept]:
        """The calls that are kept: those that train first, and of these the first of each kind."""
        found = sorted((*self.kept, *self.other, *self.more), key=lambda call: not call.trains)
        return found or self.drawn

    def _keep(
        self, among: list[Kept], args: tuple[Any, ...], kwargs: Mapping[str, Any], kind: Any, *, instead: bool = False
    ) -> bool:
        try:
            call = kept(args, kwargs)
        except NotKeptError as why:
            self.not_kept = str(why)
            return False
        if instead and call.is_flat:
            return False
        if instead:
            among[self._places[kind]] = call
            del self._flat[kind]
            return True
        if among is self.kept:
            self._places[kind] = len(among)
            if call.is_flat:
                self._flat[kind] = TRIES
        among.append(call)
        return True
