"""Function: an operation on Variables that says how feedback on its outputs becomes feedback on its inputs."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from gradspec.text._costs import FORWARD
from gradspec.text._grad_mode import ENABLED
from gradspec.text._graph._arguments import Call
from gradspec.text._graph._context import FunctionNode
from gradspec.text._graph._outputs import finish


class Function:
    """Base class of custom operations on text: subclass it, override `forward` and `backward`, and call `apply`.

    `forward` computes the outputs. `backward` gets a gradient of every output, which is a Variable (feedback, in
    words or numbers) or None, and returns one for each argument of `forward`, in the order of its signature; None
    where there is nothing to say. It must not write into any `.grad`: the engine does.

    A Function that waits for something, a language model say, declares `io_bound = True`, or has an `async def
    backward`: a backward pass with `max_concurrency=k` then runs up to k such calls at the same time.

    Example:
        >>> from gradspec.text import Function, Variable
        >>> class Reverse(Function):
        ...     io_bound = False  # it waits for nothing
        ...
        ...     @staticmethod
        ...     def forward(ctx, text):
        ...         reverse = Variable(text.data[::-1], role=text.role)
        ...         ctx.save_for_backward(text)
        ...         return reverse
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad_out):
        ...         [saved] = ctx.saved_variables
        ...         feedback = f"Here is the feedback for {saved.role} (reversed): {grad_out.data}"
        ...         return Variable(feedback, role=f"Feedback to {saved.role}")
        >>> a = Variable("This is a string", role="Input string", requires_grad=True)
        >>> c = Reverse.apply(a)
        >>> c
        Variable('gnirts a si sihT', role='Input string', grad_fn=<ReverseBackward>)
        >>> c.backward(Variable("too short", role="feedback"))
        >>> a.grad.data
        'Here is the feedback for Input string (reversed): too short'
    """

    #: Whether `backward` waits for something, so that it is worth a thread of its own.
    io_bound: ClassVar[bool] = False
    _call: ClassVar[Call]
    _is_async: ClassVar[bool] = False
    _node: ClassVar[type[FunctionNode]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"{type(self).__name__} is not to be instantiated: its methods are static; call {type(self).__name__}.apply"
        )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._is_async = inspect.iscoroutinefunction(cls.backward)
        separate = cls.setup_context is not Function.setup_context
        cls._call = Call.of(cls.forward, separate=separate)
        cls._node = type(f"{cls.__name__}Backward", (FunctionNode,), {"_function": cls, "__module__": cls.__module__})

    @classmethod
    def apply(cls, *args: object, **kwargs: object) -> Any:
        """Call `forward`, and put the call into the graph if a gradient is wanted of any argument.

        Args:
            *args: What `forward` takes, without its ctx. Variables inside lists, tuples and dicts are followed too.
            **kwargs: Arguments by name; they are bound to the signature of `forward`.

        Returns:
            What `forward` returns. The Variables in it (one, or a tuple of them) require grad if any argument does and
            grad mode is on, and else they do not, whatever `forward` said of them.

        Raises:
            TypeError: the arguments do not fit `forward`, or it returned a list or dict that holds Variables.
        """
        call = cls._call
        if len(args) == call.plain and not kwargs:
            inputs, positional, keywords, least = args, args, kwargs, call.plain
        else:
            inputs, positional, keywords, least = call.bind(args, kwargs)
        ctx = cls._node()
        variables = ctx._track(inputs, least)
        enabled, outer = ENABLED.get(), FORWARD.get()
        ENABLED.set(False)
        FORWARD.set(ctx)
        try:
            if call.separate:
                output = cls.forward(*positional, **keywords)
                cls.setup_context(ctx, inputs, output)
            else:
                output = cls.forward(ctx, *positional, **keywords)
        finally:
            ENABLED.set(enabled)
            FORWARD.set(outer)
        return finish(ctx, output, variables)

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; to be overridden, in one of two forms.

        `forward(ctx, ...)` sets up the ctx itself. `forward(...)`, without one, comes with a `setup_context`.
        """
        raise NotImplementedError("You must implement the forward function for custom autodiff.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what `backward` needs; to be overridden by a Function whose `forward` takes no ctx.

        Args:
            ctx: Where to save.
            inputs: The arguments of `forward` in the order of its signature, defaults included.
            output: What `forward` returned.
        """
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return a gradient for each argument of `forward`; to be overridden.

        Args:
            ctx: What `forward` or `setup_context` saved; `ctx.needs_input_grad` says of each argument whether a
                gradient is wanted.
            *grad_outputs: What was said of every output; None for one that is not a Variable, or that no gradient
                reached.

        Returns:
            A Variable or None for each argument; a list (tuple, dict) of them for an argument that is one.
        """
        raise NotImplementedError(
            "You must implement the backward function for custom autodiff.Function to use it with backward."
        )
