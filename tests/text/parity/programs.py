"""Random programs of autograd, as lists of steps that both `torch.autograd` and `gradspec.text` can run.

A program never stumbles over two faults at once: which of two errors comes first is no rule worth a comparison.
Differs: raises the first of two errors
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

#: How a backward answers wrongly, one kind in a program at most.
FAULTS = (
    "too few",
    "too many",
    "a str",
    "a float",
    "one for no Variable",
    "user error",
    "freed",
    "modified",
    "modified output",
)


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a Function: everything that its forward and backward do is said here."""

    number: int
    #: The arguments: the number of a value, or ("constant", what).
    inputs: tuple[Any, ...]
    #: For each output the coefficients of the inputs; None for an output that is no Variable.
    outputs: tuple[tuple[float, ...] | None, ...]
    #: Whether forward and setup_context are separate.
    separate: bool
    #: How the factor is passed: "position", "keyword", or "default".
    factor: str
    #: Whether it multiplies its first two Variables, and saves them for that.
    product: bool
    saves_output: bool
    #: The place of an input that is returned as it is, in front of the other outputs.
    returns_input: int | None
    materialize: bool
    #: Places at which backward returns None although a gradient is wanted.
    silent: tuple[int, ...]
    #: Whether backward returns one None more than it must.
    extra_none: bool
    fault: str | None
    #: "no_grad", "enable_grad" inside it, or None.
    mode: str | None


@dataclass(kw_only=True)
class Program:
    """The steps: tuples of a name and its arguments."""

    seed: int
    steps: list[tuple[Any, ...]] = field(default_factory=list)
    fault: str | None = None


@dataclass
class _Known:
    """What the generator knows of a value: enough to write steps that mean something."""

    requires_grad: bool
    leaf: bool
    #: Whether it is an output that may be its input, the same object or not.
    output: bool = False
    hooked: bool = False


def generate(seed: int) -> Program:
    """Return the program of a seed."""
    return _Writer(seed).write()


class _Writer:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.program = Program(seed=seed, fault=self.rng.choice(FAULTS) if self.rng.random() < 0.35 else None)
        self.values: list[_Known | None] = []
        self.calls = 0
        # Materialized zeros would hide that a gradient is missing, and a fault that nothing reaches is none here.
        self.silent = self.program.fault in (None, "freed") and self.rng.random() < 0.5
        self.materializes = not self.silent and self.rng.random() < 0.5
        # In torch an output that is an input shares the version of the input, which here is a value of its own; and
        # where it alone is used, the other inputs get no gradient.
        self.aliases = self.program.fault in (None, "freed") and not self.materializes
        # torch runs the call of an inner Variable in inputs=, and here it is not run: its faults cannot show.
        self.inner_inputs = self.program.fault is None
        # A graph that was freed is a fault too.
        self.retains = self.program.fault not in (None, "freed") or (self.inner_inputs and self.rng.random() < 0.5)
        self.fault_used = False

    def write(self) -> Program:
        for _ in range(self.rng.randint(1, 4)):
            self.leaf()
        for _ in range(self.rng.randint(1, 3)):
            for _ in range(self.rng.randint(1, 9)):
                self.step()
            if self.program.fault in ("modified", "modified output") and not self.fault_used:
                self.modify()
            self.differentiate()
        if self.program.fault == "freed":
            self.again()
        return self.program

    def add(self, *step: Any) -> None:
        self.program.steps.append(step)

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, wanted: Any = lambda known: True) -> int | None:
        found = [i for i, known in enumerate(self.values) if known is not None and wanted(known)]
        # Late values more often, so that graphs grow deep as well as wide.
        return self.rng.choice(found[-5:] if self.chance(0.6) else found) if found else None

    def leaf(self) -> None:
        requires_grad = self.chance(0.8)
        self.add("leaf", float(self.rng.randint(-3, 3)), requires_grad)
        self.values.append(_Known(requires_grad, True))

    def step(self) -> None:
        kind = self.rng.choices(
            ["call", "leaf", "detach", "hook", "node hook", "retain", "flag", "unhook", "clear", "post"],
            [12, 1, 1, 2, 1, 1, 0.4, 0.4, 0.3, 0.5],
        )[0]
        getattr(self, kind.replace(" ", "_"))()

    def call(self) -> None:
        rng = self.rng
        inputs: list[Any] = [
            ("constant", rng.choice([2.0, "text", None])) if self.chance(0.15) else self.pick()
            for _ in range(rng.randint(1, 3))
        ]
        if all(isinstance(value, tuple) for value in inputs):
            inputs[0] = self.pick()
        variables = [i for i, value in enumerate(inputs) if not isinstance(value, tuple)]
        outputs: list[Any] = [
            None if self.chance(0.15) else tuple(float(rng.choice([-1, 1, 2, 0.5])) for _ in variables)
            for _ in range(rng.choice([1, 1, 1, 2, 3]))
        ]
        if all(output is None for output in outputs):
            outputs[0] = (1.0,) * len(variables)
        mode = rng.choices([None, "no_grad", "enable_grad"], [20, 1, 1])[0]
        saves_output = self.chance(0.2) or self.program.fault == "modified output"
        returns_input = rng.choice(variables) if self.aliases and self.chance(0.1) else None
        tracked = mode != "no_grad" and any(self.values[inputs[i]].requires_grad for i in variables)  # type: ignore[union-attr]
        separate, product = self.chance(0.5), self.chance(0.5) and len(variables) > 1
        if separate and product:
            # Differs: refuses to save an input
            returns_input = None
        fault = None
        fits = self.program.fault != "one for no Variable" or len(variables) < len(inputs)
        if tracked and fits and not self.fault_used and self.chance(0.4) and self.program.fault in FAULTS[:6]:
            fault, self.fault_used = self.program.fault, True
        silent = tuple(i for i in variables if self.chance(0.15)) if self.silent and fault is None else ()
        self.add(
            "call",
            Call(
                number=self.calls,
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                separate=separate,
                factor=rng.choice(["position", "keyword", "default"]),
                product=product,
                saves_output=saves_output,
                returns_input=returns_input,
                materialize=self.materializes and self.chance(0.7),
                silent=silent,
                extra_none=self.chance(0.1),
                fault=fault,
                mode=mode,
            ),
        )
        self.calls += 1
        if returns_input is not None:
            # Differs: an input returned as it is has the flag
            self.values[inputs[returns_input]].output = True  # type: ignore[union-attr]
        places: list[Any] = [*([()] if returns_input is not None else []), *outputs]
        for output in places:
            self.values.append(None if output is None else _Known(tracked, not tracked, output=True))

    def detach(self) -> None:
        self.add("detach", self.pick())
        self.values.append(_Known(False, True))

    def hook(self) -> None:
        place = self.pick(lambda known: known.requires_grad or self.chance(0.05))
        if place is not None:
            self.values[place].hooked = True  # type: ignore[union-attr]
            self.add("hook", place, self.rng.choice(["look", "double"]))

    def node_hook(self) -> None:
        place = self.pick(lambda known: not known.leaf)
        if place is not None:
            self.add("node hook", place, self.rng.choice(["look", "look before", "double", "double before"]))

    def unhook(self) -> None:
        self.add("unhook", self.rng.randint(0, 3))

    def post(self) -> None:
        place = self.pick(lambda known: known.requires_grad)
        if place is not None:
            self.add("post", place)

    def retain(self) -> None:
        self.add("retain", self.pick())

    def flag(self) -> None:
        place = self.pick(lambda known: (known.leaf and not known.output) or (not known.leaf and self.chance(0.2)))
        if place is not None:
            flag = self.chance(0.5)
            self.add("flag", place, flag)
            if self.values[place].leaf:  # type: ignore[union-attr]
                self.values[place].requires_grad = flag  # type: ignore[union-attr]

    def clear(self) -> None:
        self.add("clear", self.pick())

    def modify(self) -> None:
        inner = self.program.fault == "modified output"
        place = self.pick(lambda known: known.leaf is not inner)
        if place is not None:
            self.fault_used = True
            self.add("modify", place, 5.0)

    def differentiate(self) -> None:
        wants = (lambda known: True) if self.chance(0.03) else (lambda known: known.requires_grad)
        roots = [self.pick(wants) for _ in range(self.rng.choice([1, 1, 1, 2, 3]))]
        if None in roots:
            return
        seeds = [None if self.chance(0.3) else float(self.rng.randint(1, 4)) for _ in roots]
        retain = self.retains or self.chance(0.5)
        if self.chance(0.3):
            # Differs: `grad` of an inner Variable
            inputs = [
                self.pick(
                    lambda k: k.requires_grad and (k.leaf or (self.inner_inputs and self.retains and not k.hooked))
                )
            ]
            inputs += [self.pick(lambda k: k.requires_grad and k.leaf) for _ in range(self.rng.randint(0, 2))]
            inputs = [place for place in inputs if place is not None]
            # An input that was not used is a fault too.
            unused = self.program.fault is not None or self.chance(0.7)
            if inputs:
                self.add("grad", tuple(roots), tuple(seeds), tuple(inputs), retain, unused)
            return
        inputs = None
        if self.chance(0.35):
            found = [
                self.pick(lambda k: k.requires_grad and (k.leaf or (self.inner_inputs and self.retains)))
                for _ in range(self.rng.randint(1, 3))
            ]
            inputs = tuple(place for place in found if place is not None)
        self.add("backward", tuple(roots), tuple(seeds), inputs, retain)

    def again(self) -> None:
        passes = [step for step in self.program.steps if step[0] == "backward"]
        if passes:
            self.add(*passes[-1][:-1], False)
            self.add(*passes[-1])
