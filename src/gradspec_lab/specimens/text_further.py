"""More text Functions broken on purpose: each for one thing that a law finds, and that no other specimen shows."""

from typing import Any

from gradspec.spec import TextCase, TextSpec
from gradspec.text import Function, Variable
from gradspec.text.lm import RuleModel, complete
from gradspec_lab.specimens.diseased import Disease
from gradspec_lab.specimens.text import ASK, DISEASED, ECHO, Ask, Echo, Tag, diseased

__all__ = ["DISEASED"]  # where the decorator enters them


def _other(said: Any, words: str) -> Any:
    return None if said is None else Variable(f"{words}: {said.data}")


@diseased(forward="forward returns another number of values")
class ReturnsItsMarkToo(Tag):
    @staticmethod
    def forward(ctx, x, y, mark="!"):
        return Tag.forward(ctx, x, y, mark), mark

    @staticmethod
    def backward(ctx, grad_out, grad_mark):
        return Tag.backward(ctx, grad_out)


@diseased(arity=r"^backward raised KeyError", none_for_data=r"^backward raised KeyError")
class LooksForWhatItNeverKept(Tag):
    @staticmethod
    def backward(ctx, grad_out):
        return {}["said"]


@diseased(of=ECHO, none_for_data="backward, where every Variable wants a gradient, raised IndexError")
class KeepsTooFewPlaces(Echo):
    @staticmethod
    def forward(ctx, texts):
        ctx.wanted = [text.requires_grad for text in texts]
        return Echo.forward(ctx, texts)

    @staticmethod
    def backward(ctx, grad_text, grad_n):
        unwanted = [place for place, wanted in enumerate(ctx.wanted) if not wanted]
        del unwanted[0]
        return Echo.backward(ctx, grad_text, grad_n)


@diseased(of=ASK, none_for_data="backward, where `x` wants no gradient, raised")
class NeedsTheFirst(Ask):
    @staticmethod
    def backward(ctx, grad_out):
        said = Ask.backward(ctx, grad_out)
        if not ctx.needs_input_grad[0]:
            raise ValueError("nothing is said of x")
        return said


@diseased(accumulation="ChangesItsGradient changes the gradient that it is given")
class ChangesItsGradient(Tag):
    @staticmethod
    def backward(ctx, grad_out):
        said = Tag.backward(ctx, grad_out)
        grad_out.data = f"{grad_out.data}, as I said"
        return said


@diseased(accumulation="another call before its backward pass: the gradient is not made of")
class KeepsItsTextOnTheClass(Tag):
    TEXT = ""

    @staticmethod
    def forward(ctx, x, y, mark="!"):
        KeepsItsTextOnTheClass.TEXT = x.data
        return Tag.forward(ctx, x, y, mark)

    @staticmethod
    def backward(ctx, grad_out):
        for_x, for_y, _ = Tag.backward(ctx, grad_out)
        return _other(for_x, KeepsItsTextOnTheClass.TEXT), for_y, None


@diseased(none_for_data="what is said of `(x|y)` is another where `(x|y)` wants no gradient")
class SaysSomethingOfBothOrNone(Tag):
    @staticmethod
    def backward(ctx, grad_out):
        return Tag.backward(ctx, grad_out) if all(ctx.needs_input_grad[:2]) else (None, None, None)


@diseased(none_for_data="backward, where `x` wants no gradient, raised ValueError")
class NeedsTheFirstToo(Tag):
    @staticmethod
    def backward(ctx, grad_out):
        if not ctx.needs_input_grad[0]:
            raise ValueError("nothing is said of x")
        return Tag.backward(ctx, grad_out)


@diseased(of=ASK, none_for_data="a model is asked what is of use only to `x`")
class AsksAModelInVain(Ask):
    @staticmethod
    def backward(ctx, grad_out):
        model = RuleModel({"of (first|second)": r"\1: " + grad_out.data})
        said = [complete(model, f"of {name}").text for name in ("first", "second")]
        return *(Variable(t, "remark") if w else None for t, w in zip(said, ctx.needs_input_grad, strict=False)), None


@diseased(feedback="the feedback is not what the case asks for")
class SpeaksDifferentlyOfAQuestion(Tag):
    @staticmethod
    def backward(ctx, grad_out):
        for_x, for_y, _ = Tag.backward(ctx, grad_out)
        return (_other(for_x, "a question"), for_y, None) if ctx.mark == "?" else (for_x, for_y, None)


@diseased(accumulation="two passes: the gradient is not made of")
class SaysMoreWhereSomethingWasSaid(Tag):
    @staticmethod
    def forward(ctx, x, y, mark="!"):
        ctx.said = isinstance(x, Variable) and x.grad is not None
        return Tag.forward(ctx, x, y, mark)

    @staticmethod
    def backward(ctx, grad_out):
        for_x, for_y, _ = Tag.backward(ctx, grad_out)
        return _other(for_x, "and again") if ctx.said else for_x, for_y, None


@diseased(of=ASK, order="a sequential pass: the gradient is not made of")
class SpeaksOfTheCallBefore(Ask):
    """Each call says what was said of the one before it in the pass."""

    BEFORE: Any = None

    @staticmethod
    def backward(ctx, grad_out):
        before, SpeaksOfTheCallBefore.BEFORE = SpeaksOfTheCallBefore.BEFORE, grad_out
        return Ask.backward(ctx, before or grad_out)


@diseased(all_or_nothing="a pass that says something of an argument once says nothing of it the second time")
class SpeaksOnce(Tag):
    @staticmethod
    def backward(ctx, grad_out):
        if getattr(ctx, "spoke", False):
            return None, None, None
        ctx.spoke = True
        return Tag.backward(ctx, grad_out)


@diseased(all_or_nothing="the pass after one that failed raised RuntimeError")
class TriesTwice(Tag):
    @staticmethod
    def backward(ctx, grad_out):
        ctx.tries = getattr(ctx, "tries", 0) + 1
        if ctx.tries > 2:
            raise RuntimeError("no third try")
        return Tag.backward(ctx, grad_out)


@diseased(all_or_nothing="the pass after one that failed: the gradient is not made of")
class TiresOfSpeaking(Tag):
    @staticmethod
    def backward(ctx, grad_out):
        ctx.spoken = getattr(ctx, "spoken", 0) + 1
        for_x, for_y, _ = Tag.backward(ctx, grad_out)
        return _other(for_x, "as before") if ctx.spoken > 2 else for_x, for_y, None


class NeedsFeedbackOnBothHalves(Function):
    """Two outputs, and a backward that reads what is said of each."""

    @staticmethod
    def forward(ctx, x):
        half = len(x.data) // 2
        return Variable(x.data[:half]), Variable(x.data[half:])

    @staticmethod
    def backward(ctx, grad_first, grad_second):
        return Variable(f"{grad_first.data} {grad_second.data}")


def _halves(x: str) -> tuple[str, str]:
    return x[: len(x) // 2], x[len(x) // 2 :]


DISEASED["needs_feedback_on_both_halves"] = Disease(
    spec=TextSpec(
        name="needs_feedback_on_both_halves",
        function=NeedsFeedbackOnBothHalves.apply,
        primal=_halves,
        cases=lambda make: [TextCase(name="four letters", args=(make("abcd"),))],
        wrt=("x",),
    ),
    caught_by={"arity": "backward, where only output 0 gets feedback, raised AttributeError"},
)
