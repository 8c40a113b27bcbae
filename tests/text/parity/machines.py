"""The two machines that run a program: each keeps values, and a log of every call of user code.

What a Function does is written once, in `formula` and `cotangents`, over numbers of either machine.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from gradspec import text
from text.parity.programs import Call

FACTOR = 3.0


class UserError(Exception):
    """What a backward of the user's raises."""


def variable_places(call: Call) -> list[int]:
    return [place for place, value in enumerate(call.inputs) if not isinstance(value, tuple)]


def formula(call: Call, xs: list[Any], factor: float) -> list[Any]:
    """Return the outputs for the Variables among the inputs: linear combinations, and a product if it is asked for."""
    outputs: list[Any] = []
    for coefficients in call.outputs:
        if coefficients is None:
            outputs.append("no Variable")
            continue
        total = xs[0] * coefficients[0]
        for x, c in zip(xs[1:], coefficients[1:], strict=True):
            total = total + x * c
        total = total * factor
        outputs.append(total + xs[0] * xs[1] if call.product else total)
    return outputs


def cotangents(call: Call, grads: list[Any], saved: list[Any], needs: tuple[bool, ...], factor: float) -> list[Any]:
    """Return a number, or None, for each input of the call."""
    given = list(grads)
    through = given.pop(0) if call.returns_input is not None else None
    result: list[Any] = [None] * len(call.inputs)
    for order, place in enumerate(variable_places(call)):
        if not needs[place] or place in call.silent:
            continue
        total = through if call.returns_input == place else None
        for grad, coefficients in zip(given, call.outputs, strict=True):
            if grad is None or coefficients is None:
                continue
            term = grad * (coefficients[order] * factor)
            if call.product and order < 2:
                term = term + grad * saved[1 - order]
            total = term if total is None else total + term
        result[place] = total
    return result


class Machine:
    """What both machines share: the values, the log, and the steps that are written the same way."""

    FUNCTIONS: dict[bool, Any]

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.handles: list[Any] = []
        self.log: list[tuple[Any, ...]] = []
        self.filled: list[int] = []
        self.nodes: dict[int, Any] = {}

    def run(self, step: tuple[Any, ...]) -> Any:
        """Run a step; return what it returned, as plain numbers, or the error that it raised."""
        name, *arguments = step
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return getattr(self, name.replace(" ", "_"))(*arguments)
        except (RuntimeError, TypeError, ValueError, UserError) as error:
            return error

    def call(self, call: Call) -> None:
        arguments = [value[1] if isinstance(value, tuple) else self.values[value] for value in call.inputs]
        keywords = {"factor": FACTOR} if call.factor == "keyword" else {}
        if call.factor == "position":
            arguments.append(FACTOR)
        function = self.FUNCTIONS[call.separate, len(call.inputs)]
        apply: Callable[[], Any] = lambda: function.apply((self, call), *arguments, **keywords)  # noqa: E731
        if call.mode == "no_grad":
            with self.library.no_grad():
                outputs = apply()
        elif call.mode == "enable_grad":
            with self.library.no_grad(), self.library.enable_grad():
                outputs = apply()
        else:
            outputs = apply()
        self.values += outputs if isinstance(outputs, tuple) else (outputs,)

    def hook(self, place: int, kind: str) -> None:
        def hook(grad: Any) -> Any:
            self.log.append(("hook", place, self.number(grad)))
            return self.make(self.number(grad) * 2) if kind == "double" and grad is not None else None

        self.handles.append(self.values[place].register_hook(hook))

    def node_hook(self, place: int, kind: str) -> None:
        node = self.values[place].grad_fn
        if node is None:
            return
        doubled = lambda grads: tuple(  # noqa: E731
            [None if g is None else self.make(self.number(g) * 2) for g in grads]
        )

        def before(outputs: Any) -> Any:
            self.log.append(("prehook", place, tuple(map(self.number, outputs))))
            return doubled(outputs) if kind.startswith("double") else None

        def after(inputs: Any, outputs: Any) -> Any:
            self.log.append(("posthook", place, tuple(map(self.number, outputs)), tuple(map(self.number, inputs))))
            return doubled(inputs) if kind.startswith("double") else None

        if kind.endswith("before"):
            self.handles.append(node.register_prehook(before))
        else:
            self.handles.append(node.register_hook(after))

    def unhook(self, which: int) -> None:
        if which < len(self.handles):
            self.handles[which].remove()

    def post(self, place: int) -> None:
        self.handles.append(self.values[place].register_post_accumulate_grad_hook(lambda v: self.filled.append(place)))

    def retain(self, place: int) -> None:
        self.values[place].retain_grad()

    def flag(self, place: int, flag: bool) -> None:
        self.values[place].requires_grad = flag

    def clear(self, place: int) -> None:
        self.values[place].grad = None

    def detach(self, place: int) -> None:
        self.values.append(self.values[place].detach())

    def backward(self, roots: Any, seeds: Any, inputs: Any, retain: bool) -> None:
        self.library_backward(
            [self.values[root] for root in roots],
            [None if seed is None else self.make(seed) for seed in seeds],
            retain_graph=retain,
            inputs=None if inputs is None else [self.values[place] for place in inputs],
        )

    def grad(self, roots: Any, seeds: Any, inputs: Any, retain: bool, unused: bool) -> list[Any]:
        found = self.library_grad(
            [self.values[root] for root in roots],
            [self.values[place] for place in inputs],
            [None if seed is None else self.make(seed) for seed in seeds],
            retain_graph=retain,
            allow_unused=unused,
        )
        return [self.number(grad) for grad in found]

    def grads(self) -> list[Any]:
        """Return the gradient of every Variable, as a number."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [self.number(value.grad) if self.is_variable(value) else None for value in self.values]

    def state(self) -> list[Any]:
        """Return what can be seen of every value."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [
                (
                    self.number(value),
                    value.requires_grad,
                    value.is_leaf,
                    value.retains_grad,
                    value.output_nr,
                    self.number(value.grad),
                    None if value.grad_fn is None else [node is None for node, _ in self.next_functions(value)],
                )
                if self.is_variable(value)
                else value
                for value in self.values
            ]


def functions(machine: type[Machine], base: type) -> dict[tuple[bool, int], Any]:
    """Return the Functions of a machine: combined and separate, for one to three inputs."""
    return {(separate, n): _function(machine, base, separate, n) for separate in (False, True) for n in (1, 2, 3)}


def _setup(machine: type[Machine], ctx: Any, task: Any, xs: Any, outputs: Any, factor: float) -> None:
    owner, call = task
    ctx.task, ctx.factor, ctx.n_slots = task, factor, len(xs)
    # Differs: an unused output is materialized
    ctx.set_materialize_grads(call.materialize)
    variables = [xs[place] for place in variable_places(call)]
    kept = variables[:2] if call.product else []
    if call.saves_output:
        kept = [*kept, next(value for value in reversed(outputs) if machine.is_variable(value))]
    if kept:
        ctx.save_for_backward(*kept)
    owner.log.append(("forward", call.number, tuple(ctx.needs_input_grad)))


def _compute(machine: type[Machine], task: Any, xs: Any, factor: float) -> Any:
    _, call = task
    numbers = [machine.inside(xs[place]) for place in variable_places(call)]
    outputs = [value if isinstance(value, str) else machine.wrap(value) for value in formula(call, numbers, factor)]
    if call.returns_input is not None:
        outputs.insert(0, xs[call.returns_input])
    return tuple(outputs)


def _backward(machine: type[Machine], ctx: Any, grads: Any) -> Any:
    owner, call = ctx.task
    needs = tuple(ctx.needs_input_grad)
    owner.log.append(("backward", call.number, tuple(map(machine.number, grads)), needs))
    kept = call.product or call.saves_output
    saved = [machine.inside(value) for value in machine.saved(ctx)] if kept else []
    numbers = [None if grad is None else machine.inside(grad) for grad in grads]
    result = cotangents(call, numbers, saved, needs[1:], ctx.factor)
    answer: list[Any] = [None, *[None if value is None else machine.wrap(value) for value in result]]
    answer += [None] * (len(needs) - len(answer))
    if call.extra_none:
        answer.append(None)
    match call.fault:
        case "too few":
            return tuple(answer[: len(call.inputs)])
        case "too many":
            return (*answer, machine.make(1.0))
        case "a str" | "a float":
            answer[1 + variable_places(call)[0]] = "text" if call.fault == "a str" else 1.0
        case "one for no Variable":
            place = next(i for i, value in enumerate(call.inputs) if isinstance(value, tuple))
            answer[1 + place] = machine.make(1.0)
        case "user error":
            raise UserError
    return tuple(answer)


def _function(machine: type[Machine], base: type, separate: bool, n: int) -> Any:
    def backward(ctx: Any, *grads: Any) -> Any:
        return _backward(machine, ctx, grads)

    def combined(ctx: Any, task: Any, *rest: Any, factor: float = FACTOR) -> Any:
        xs, factor = _split(rest, n, factor)
        outputs = _compute(machine, task, xs, factor)
        _setup(machine, ctx, task, xs, outputs, factor)
        return outputs

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        task, *xs, factor = inputs
        _setup(machine, ctx, task, xs, output, factor)

    body: dict[str, Any] = {"backward": staticmethod(backward)}
    forwards: dict[int, Any] = {
        1: lambda task, a, factor=FACTOR: _compute(machine, task, (a,), factor),
        2: lambda task, a, b, factor=FACTOR: _compute(machine, task, (a, b), factor),
        3: lambda task, a, b, c, factor=FACTOR: _compute(machine, task, (a, b, c), factor),
    }
    if separate:
        body |= {"forward": staticmethod(forwards[n]), "setup_context": staticmethod(setup)}
    else:
        combined_forwards: dict[int, Any] = {
            1: lambda ctx, task, a, factor=FACTOR: combined(ctx, task, a, factor),
            2: lambda ctx, task, a, b, factor=FACTOR: combined(ctx, task, a, b, factor),
            3: lambda ctx, task, a, b, c, factor=FACTOR: combined(ctx, task, a, b, c, factor),
        }
        body |= {"forward": staticmethod(combined_forwards[n])}
    return type("Random", (base,), body)


def _split(rest: tuple[Any, ...], n: int, factor: float) -> tuple[tuple[Any, ...], float]:
    return (rest[:n], rest[n]) if len(rest) > n else (rest, factor)


class TorchMachine(Machine):
    """`torch.autograd` on float64 scalars."""

    library = torch

    def leaf(self, value: float, requires_grad: bool) -> None:
        self.values.append(torch.tensor(value, dtype=torch.float64, requires_grad=requires_grad))

    def detach(self, place: int) -> None:
        # Differs: a detached tensor
        self.values.append(self.values[place].detach().clone())

    def modify(self, place: int, value: float) -> None:
        with torch.no_grad():
            self.values[place].fill_(value)

    def library_backward(self, roots: Any, seeds: Any, **options: Any) -> None:
        torch.autograd.backward(roots, seeds, **options)

    def library_grad(self, *args: Any, **options: Any) -> Any:
        return torch.autograd.grad(*args, **options)

    def next_functions(self, value: Any) -> Any:
        return value.grad_fn.next_functions

    @staticmethod
    def is_variable(value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    @staticmethod
    def number(value: Any) -> Any:
        return value.item() if isinstance(value, torch.Tensor) else value

    @staticmethod
    def inside(value: Any) -> Any:
        return value.item() if value is not None else None

    @staticmethod
    def make(value: float) -> Any:
        return torch.tensor(value, dtype=torch.float64)

    wrap = make

    @staticmethod
    def saved(ctx: Any) -> Any:
        return ctx.saved_tensors


class TextMachine(Machine):
    """`gradspec.text` on floats."""

    library = text

    def __init__(self, max_concurrency: int | None = None) -> None:
        super().__init__()
        self.options = {"max_concurrency": max_concurrency}

    def leaf(self, value: float, requires_grad: bool) -> None:
        self.values.append(text.Variable(value, requires_grad=requires_grad))

    def modify(self, place: int, value: float) -> None:
        self.values[place].data = value

    def library_backward(self, roots: Any, seeds: Any, **options: Any) -> None:
        text.backward(roots, seeds, **options, **self.options)

    def library_grad(self, *args: Any, **options: Any) -> Any:
        return text.grad(*args, **options, **self.options)

    def next_functions(self, value: Any) -> Any:
        return value.grad_fn.next_functions

    @staticmethod
    def is_variable(value: Any) -> bool:
        return isinstance(value, text.Variable)

    @staticmethod
    def number(value: Any) -> Any:
        return value.data if isinstance(value, text.Variable) else value

    inside = number

    @staticmethod
    def make(value: float) -> Any:
        return text.Variable(value)

    wrap = make

    @staticmethod
    def saved(ctx: Any) -> Any:
        return ctx.saved_variables


TorchMachine.FUNCTIONS = functions(TorchMachine, torch.autograd.Function)
TextMachine.FUNCTIONS = functions(TextMachine, text.Function)
