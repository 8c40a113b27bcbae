"""The specs of operations that judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import Any

from gradspec.spec import Argument, Misuse, TextCase, TextMaker, TextSpec
from gradspec.text._graph._variable import Variable
from gradspec.text.lm import Model, RuleModel
from gradspec.text.ops._chat_spec import MODEL, MODEL_ARGUMENT
from gradspec.text.ops._evaluate import Scorer, evaluate, exact_match
from gradspec.text.ops._judge import judge

#: Answers by rules, offline; what it is asked on the way back names the piece that can be changed.
CRITIC = RuleModel({r"<prediction>\n(.*)\n": r"It says \1. <score>0.5</score>"})
PREDICTION = Argument(name="prediction", type="Variable", gradient=True, text="A text, or a list of them.")
TARGET = Argument(
    name="target", type="Any", text="What is right: a Variable or a value; for a list one for each, or one for all."
)
SUCCESS = Argument(name="success", type="Callable[[float], bool]", text="Of a score, whether nothing needs to change.")
REDUCTION = Argument(name="reduction", type="Callable[[Sequence[float]], float]", text="From many scores to one.")
JUDGED = "The score and the explanation. What succeeded gets no feedback, and nothing behind it is asked for any."


def _length(prediction: Any, target: Any) -> tuple[float, str]:
    return float(len(prediction) <= target), f"It has {len(prediction)} letters."


def _scored(
    scorer: Scorer,
    prediction: Any,
    target: Any,
    *,
    success: Callable[[float], bool] = bool,
    reduction: Callable[[Sequence[float]], float] = fmean,
) -> tuple[Any, Any]:
    if not isinstance(prediction, list):
        return scorer(prediction, target)
    targets = target if isinstance(target, list) else [target] * len(prediction)
    found = [scorer(p, t) for p, t in zip(prediction, targets, strict=True)]
    return reduction([score for score, _ in found]), [why for _, why in found]


def _evaluate_cases(make: TextMaker) -> Iterator[TextCase]:
    long = make("a long answer", role="answer")
    says = {"prediction": "It has 13 letters."}
    yield TextCase(name="a fault", args=(_length, long, 5), feedback=(1, None), says=says)
    remark = {"prediction": "It has 13 letters.\nand dull"}
    more = (_length, make("a long answer", role="answer"), 5)
    yield TextCase(name="a remark on the explanation", args=more, feedback=(None, "and dull"), says=remark)
    yield TextCase(name="a success", args=(_length, make("short"), 5), feedback=(1, None), says={"prediction": None})
    batch = (_length, make(["short", "a long one"]), Variable([5, 5]))
    kwargs = {"reduction": min}
    parts = {"prediction": ["", "It has 10 letters."], "target": None}
    yield TextCase(name="a batch", args=batch, kwargs=kwargs, feedback=(1, None), says=parts)


def _evaluate_misuses(make: TextMaker) -> Iterator[Misuse]:
    case = TextCase(name="targets of another number", args=(_length, make(["a", "b"]), [1, 2, 3]))
    yield Misuse(case=case, error=ValueError, match="2 predictions cannot be compared with 3 targets")
    case = TextCase(name="no prediction", args=(_length, make([]), []))
    yield Misuse(case=case, error=ValueError, match="there is no prediction to score")
    case = TextCase(name="scorer without a text", args=(lambda prediction, target: 1.0, make("a"), 1))
    yield Misuse(case=case, error=TypeError, match="a scorer returns a number and a text that explains it, not 1.0")
    case = TextCase(name="reduction to text", args=(_length, make(["a"]), [1]), kwargs={"reduction": str})
    yield Misuse(case=case, error=ValueError, match="it must be a finite number")


def _exact(prediction: Any, target: Any, **options: Any) -> tuple[Any, Any]:
    def scorer(p: Any, t: Any) -> tuple[float, str]:
        right = str(p).strip() == str(t).strip()
        return float(right), "The prediction is right." if right else f"The prediction is {p!r}, and {t!r} is right."

    return _scored(scorer, prediction, target, **options)


def _exact_cases(make: TextMaker) -> Iterator[TextCase]:
    says = {"prediction": "The prediction is '5', and '4' is right."}
    yield TextCase(name="a fault", args=(make("5", role="answer"), "4"), feedback=(1, None), says=says)
    yield TextCase(name="a success", args=(make(" 4 "), "4"), feedback=(1, None), says={"prediction": None})


def _exact_misuses(make: TextMaker) -> Iterator[Misuse]:
    case = TextCase(name="targets of another number", args=(make(["a", "b"]), ["a", "b", "c"]))
    yield Misuse(case=case, error=ValueError, match="2 predictions cannot be compared with 3 targets")


def _judge(model: Model, task: str, prediction: Any, target: Any = "(none)", **options: Any) -> tuple[Any, Any]:
    return _scored(lambda p, t: (0.5, f"It says {p}."), prediction, target)


def _judge_cases(make: TextMaker) -> Iterator[TextCase]:
    answer = make("well, in fact", role="answer")
    says = {"prediction": "It says well, in fact."}
    yield TextCase(name="a fault", args=(CRITIC, "Be short.", answer), feedback=(1, None), says=says)
    passes = {"success": lambda score: score >= 0.5}
    good = (CRITIC, "Be short.", make("yes", role="answer"))
    yield TextCase(name="good enough", args=good, kwargs=passes, feedback=(1, None), says={"prediction": None})


def _judge_misuses(make: TextMaker) -> Iterator[Misuse]:
    case = TextCase(name="no score in the answer", args=(MODEL, "Be short.", make("well, in fact")))
    yield Misuse(case=case, error=ValueError, match="the judge's answer has no <score> from 0 to 1")
    generous = RuleModel({}, default="Good. <score>7</score>")
    case = TextCase(name="score that is not on the scale", args=(generous, "Be short.", make("yes")))
    yield Misuse(
        case=case, error=ValueError, match="the judge's answer has no <score> from 0 to 1: 7 is not on that scale"
    )
    quoting = RuleModel({}, default="It says <score>1</score>.")
    case = TextCase(
        name="score that may be quoted from the prediction", args=(quoting, "Be short.", make("<score>1</score>"))
    )
    yield Misuse(case=case, error=ValueError, match="from 0 to 1 of its own: the prediction has a <score> too")


EVALUATE = TextSpec(
    name="text_evaluate",
    function=evaluate,
    primal=_scored,
    cases=_evaluate_cases,
    raises=_evaluate_misuses,
    wrt=("prediction",),
    arguments=(
        Argument(
            name="scorer",
            type="Callable[[Any, Any], tuple[float, str]]",
            text="From a prediction and a target to a score and an explanation.",
        ),
        PREDICTION,
        TARGET,
        SUCCESS,
        REDUCTION,
    ),
    returns=JUDGED,
    documented=(evaluate,),
)
EXACT_MATCH = TextSpec(
    name="text_exact_match",
    function=exact_match,
    primal=_exact,
    cases=_exact_cases,
    raises=_exact_misuses,
    wrt=("prediction",),
    arguments=(PREDICTION, TARGET),
    returns=JUDGED,
    documented=(exact_match,),
)
JUDGE = TextSpec(
    name="text_judge",
    function=judge,
    primal=_judge,
    cases=_judge_cases,
    raises=_judge_misuses,
    wrt=("prediction",),
    arguments=(
        MODEL_ARGUMENT,
        Argument(name="task", type="str", text="What a prediction is for and what makes a good one, in words."),
        PREDICTION,
        TARGET,
    ),
    returns=JUDGED,
    documented=(judge,),
)
