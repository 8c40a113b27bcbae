"""Text Functions that are sound, and text Functions broken on purpose, each named after its disease."""

import time
from collections.abc import Iterator
from dataclasses import replace

from gradspec.spec import Misuse, TextCase, TextMaker, TextSpec
from gradspec.text import Function, Variable, defer
from gradspec_lab.specimens.diseased import Disease, Specimens


class Tag(Function):
    """Two texts one behind the other, with a mark: the sound twin of the diseased ones.

    >>> Tag.apply(Variable("a"), "b", "?").data
    'ab?'
    """

    @staticmethod
    def forward(ctx, x, y, mark="!"):
        if not isinstance(x, Variable):
            raise TypeError(f"x is {x!r}, expected a Variable")
        ctx.save_for_backward(x, y)
        ctx.mark = mark
        return Variable(x.data + (y.data if isinstance(y, Variable) else y) + mark, role="both")

    @staticmethod
    def backward(ctx, grad_out):
        said = [
            Variable(f"{v.role}: {grad_out.data}", role="remark") if needed else None
            for v, needed in zip(ctx.saved_variables, ctx.needs_input_grad, strict=False)
        ]
        return *said, None


class Echo(Function):
    """Several texts in one; what is said of it is said of each."""

    @staticmethod
    def forward(ctx, texts):
        ctx.n = len(texts)
        return Variable(" ".join(text.data for text in texts)), ctx.n

    @staticmethod
    def backward(ctx, grad_text, grad_n):
        return [grad_text] * ctx.n


class Ask(Function):
    """A sound backward that waits."""

    io_bound = True

    @staticmethod
    def forward(ctx, x, y, mark="!"):
        return Tag.forward(ctx, x, y, mark)

    @staticmethod
    def backward(ctx, grad_out):
        said = [
            defer(Variable, f"{v.role}: {grad_out.data}", "remark") if needed else None
            for v, needed in zip(ctx.saved_variables, ctx.needs_input_grad, strict=False)
        ]
        return *said, None


class Gist(Function):
    """A sound backward that is awaited."""

    @staticmethod
    def forward(x, y, mark="!"):
        return Variable(x.data + (y.data if isinstance(y, Variable) else y) + mark)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], inputs[1], output)

    @staticmethod
    async def backward(ctx, grad_out):
        *texts, _ = ctx.saved_variables
        said = zip(texts, ctx.needs_input_grad, strict=False)
        return *(Variable(f"{v.role}: {grad_out.data}") if needed else None for v, needed in said), None


def _tag(x, y, mark="!"):
    return x + y + mark


def _cases(make: TextMaker) -> Iterator[TextCase]:
    said = {"x": "first: too long", "y": "second: too long"}
    two = (make("a", role="first"), make("b", role="second"))
    yield TextCase(name="two Variables", args=two, feedback=("too long",), says=said)
    one = {"x": lambda text: text.startswith("first: "), "y": None}
    yield TextCase(name="a Variable and data", args=(make("a", role="first"), "b"), kwargs={"mark": "?"}, says=one)
    yield TextCase(name="no gradient wanted", args=(Variable("a"), "b"))


def _misuses(make: TextMaker) -> Iterator[Misuse]:
    yield Misuse(case=TextCase(name="x is plain", args=("a", make("b"))), error=TypeError, match="x is 'a'")


def _echo_cases(make: TextMaker) -> Iterator[TextCase]:
    texts = [make("a", role="first"), Variable("b"), make("c", role="third")]
    says = {"texts[0]": "well", "texts[2]": "well"}
    yield TextCase(name="three texts", args=(texts,), feedback=("well",), says=says)


TAG = TextSpec(
    name="tag", function=Tag.apply, primal=_tag, cases=_cases, raises=_misuses, wrt=("x", "y"), documented=(Tag,)
)
ECHO = TextSpec(
    name="echo",
    function=Echo.apply,
    primal=lambda texts: (" ".join(texts), len(texts)),
    cases=_echo_cases,
    wrt=("texts",),
)
ASK = TAG.for_(Ask.apply, name="ask", io_bound=True)
GIST = replace(TAG.for_(Gist.apply, name="gist", io_bound=True), raises=None)
HONEST = (TAG, ECHO, ASK, GIST)
DISEASED = Specimens()


def diseased(*, of: TextSpec = TAG, **caught_by: str):
    """Enter a sick variant of an honest Function, under the name of its disease."""

    def enter(cls):
        name = "".join(f"_{c.lower()}" if c.isupper() else c for c in cls.__name__).lstrip("_")
        DISEASED[name] = Disease(spec=of.for_(cls.apply, name=name), caught_by=caught_by)
        return cls

    return enter


@diseased(forward="forward returns something else")
class ForgetsTheMark(Tag):
    @staticmethod
    def forward(ctx, x, y, mark="!"):
        return Tag.forward(ctx, x, y, "")


@diseased(forward="forward changes an argument")
class ChangesItsArgument(Tag):
    @staticmethod
    def forward(ctx, x, y, mark="!"):
        output = Tag.forward(ctx, x, y, mark)
        x.data += " "
        ctx.save_for_backward(x, y)
        return output


@diseased(feedback="the feedback says something else")
class FeedbackToTheWrongArgument(Tag):
    @staticmethod
    def backward(ctx, grad_out):
        for_x, for_y, _ = Tag.backward(ctx, grad_out)
        return (for_y, for_x, None) if for_y else (for_x, for_y, None)


@diseased(feedback="not what the case asks for|says something else")
class DropsWhatWasSaid(Tag):
    @staticmethod
    def backward(ctx, grad_out):
        return Variable("Improve it."), Variable("Improve it.") if ctx.needs_input_grad[1] else None, None


@diseased(arity="another number of gradients than forward has arguments")
class ForgetsAPlace(Tag):
    @staticmethod
    def backward(ctx, grad_out):
        return Tag.backward(ctx, grad_out)[0]


@diseased(arity="another number of gradients than forward has arguments")
class OnePlaceTooMany(Tag):
    @staticmethod
    def backward(ctx, grad_out):
        return *Tag.backward(ctx, grad_out), None


@diseased(none_for_data="says something of an argument that holds no Variable")
class SpeaksOfData(Tag):
    @staticmethod
    def backward(ctx, grad_out):
        for_x, for_y, _ = Tag.backward(ctx, grad_out)
        return for_x, for_y, Variable("another mark")


class FeedbackOnATarget(Tag):
    """Sound as Tag; sick by a spec in which `y` is a target."""


def _target_cases(make: TextMaker) -> Iterator[TextCase]:
    yield TextCase(name="a target", args=(make("a", role="answer"), Variable("b", role="target")))


DISEASED["feedback_on_a_target"] = Disease(
    spec=replace(
        TAG.for_(FeedbackOnATarget.apply, name="feedback_on_a_target"), cases=_target_cases, raises=None, wrt=("x",)
    ),
    caught_by={"none_for_data": "feedback reaches an argument that is not in `wrt`"},
)


@diseased(of=ASK, none_for_data="works out feedback on a Variable that wants none")
class AsksInVain(Ask):
    @staticmethod
    def backward(ctx, grad_out):
        x, y = ctx.saved_variables
        roles = [v.role if isinstance(v, Variable) else None for v in (x, y)]
        return *(defer(Variable, f"{role}: {grad_out.data}") if role else None for role in roles), None


@diseased(accumulation="the gradient is not made of what each call says alone")
class WritesTheGradientItself(Tag):
    @staticmethod
    def backward(ctx, grad_out):
        for_x, for_y, _ = Tag.backward(ctx, grad_out)
        x, _ = ctx.saved_variables
        x.grad = for_x
        return None, for_y, None


@diseased(accumulation="two calls in one pass: the gradient is not made of what each call says alone")
class OneRemarkForAllCalls(Tag):
    REMARK = Variable("first: improve it")

    @staticmethod
    def backward(ctx, grad_out):
        return OneRemarkForAllCalls.REMARK, Tag.backward(ctx, grad_out)[1], None


@diseased(of=ASK, order="a concurrent pass: the gradient is not made of")
class KeepsItsFeedbackOnTheClass(Ask):
    """Right as long as one call ends before the next one begins."""

    @staticmethod
    def backward(ctx, grad_out):
        KeepsItsFeedbackOnTheClass.GRAD = grad_out
        time.sleep(0.05)
        return Ask.backward(ctx, KeepsItsFeedbackOnTheClass.GRAD)


@diseased(of=ASK, order="do not agree on whether the backward waits")
class WaitsAndDoesNotSaySo(Tag):
    @staticmethod
    def backward(ctx, grad_out):
        time.sleep(0.001)
        return Tag.backward(ctx, grad_out)


@diseased(exactly_once="runs 2 times in one pass")
class BackwardInBackward(Tag):
    @staticmethod
    def backward(ctx, grad_out):
        x, _ = ctx.saved_variables
        for_x, for_y, _ = Tag.backward(ctx, grad_out)
        x.backward(for_x, retain_graph=True)
        return for_x, for_y, None


@diseased(of=ECHO, exactly_once="returns a copy of the gradient")
class CopiesTheGradient(Echo):
    @staticmethod
    def backward(ctx, grad_text, grad_n):
        return [Variable(grad_text.data) for _ in range(ctx.n)]


@diseased(all_or_nothing="a pass that failed has changed a gradient")
class MovesAGradientAndFails(Tag):
    @staticmethod
    def forward(ctx, x, y, mark="!"):
        ctx.kept = x.grad_fn.next_functions[0].node.variable if x.grad_fn is not None else None
        return Tag.forward(ctx, x, y, mark)

    @staticmethod
    def backward(ctx, grad_out):
        if ctx.kept is not None and ctx.kept.grad is not None:
            ctx.kept.grad = Variable(f"{ctx.kept.grad.data}, and again")
        return Tag.backward(ctx, grad_out)


@diseased(all_or_nothing="a second pass over a graph that was kept raised IndexError")
class UsesUpWhatItKept(Tag):
    @staticmethod
    def forward(ctx, x, y, mark="!"):
        ctx.roles = ["first"]
        return Tag.forward(ctx, x, y, mark)

    @staticmethod
    def backward(ctx, grad_out):
        ctx.roles.pop()
        return Tag.backward(ctx, grad_out)


@diseased(no_cycle="outlive their last reference")
class OutputOnTheCtx(Tag):
    @staticmethod
    def forward(ctx, x, y, mark="!"):
        ctx.output = Tag.forward(ctx, x, y, mark)
        return ctx.output


@diseased(wrong_call="the wrong call was refused after a change")
class SpoilsWhatItRefuses(Tag):
    @staticmethod
    def forward(ctx, x, y, mark="!"):
        if not isinstance(x, Variable):
            y.grad = Variable("spoilt")
        return Tag.forward(ctx, x, y, mark)
