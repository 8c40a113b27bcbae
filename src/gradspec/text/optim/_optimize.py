"""A loop of training for text: minibatches, validation, the best so far, and a checkpoint after each step."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, overload

from gradspec.text._costs import check_prices
from gradspec.text._graph._variable import Variable
from gradspec.text._scheduling._overlap import concurrency as overlapping
from gradspec.text.lm._budget import Budget
from gradspec.text.lm._meter import Meter, metered
from gradspec.text.optim._checkpoint import fingerprint, load, save
from gradspec.text.optim._examples import Example, minibatch, split
from gradspec.text.optim._gain import Gain
from gradspec.text.optim._plan import Plan
from gradspec.text.optim._rehearsal import rehearsed
from gradspec.text.optim._report import Optimized, Score, step_of
from gradspec.text.optim._scores import Metric, Run
from gradspec.text.optim._tgd import TextualGradientDescent


@overload
def optimize(
    program: Callable[[Any], Variable],
    data: Sequence[Example] | Mapping[str, Sequence[Example]],
    metric: Metric,
    optimizer: TextualGradientDescent,
    *,
    steps: int = ...,
    batch: int = ...,
    parts: tuple[float, float, float] = ...,
    seed: int = ...,
    patience: int | None = ...,
    success: Callable[[float], bool] = ...,
    concurrency: int = ...,
    checkpoint: str | os.PathLike[str] | None = ...,
    prices: Mapping[str, tuple[float, float]] | None = ...,
    only_shown: bool = ...,
    budget: Budget | None = ...,
    dry_run: Literal[False] = ...,
) -> Optimized: ...


@overload
def optimize(
    program: Callable[[Any], Variable],
    data: Sequence[Example] | Mapping[str, Sequence[Example]],
    metric: Metric,
    optimizer: TextualGradientDescent,
    *,
    steps: int = ...,
    batch: int = ...,
    parts: tuple[float, float, float] = ...,
    seed: int = ...,
    patience: int | None = ...,
    success: Callable[[float], bool] = ...,
    concurrency: int = ...,
    checkpoint: str | os.PathLike[str] | None = ...,
    prices: Mapping[str, tuple[float, float]] | None = ...,
    only_shown: bool = ...,
    budget: Budget | None = ...,
    dry_run: Literal[True],
) -> Plan: ...


def optimize(
    program: Callable[[Any], Variable],
    data: Sequence[Example] | Mapping[str, Sequence[Example]],
    metric: Metric,
    optimizer: TextualGradientDescent,
    *,
    steps: int = 10,
    batch: int = 4,
    parts: tuple[float, float, float] = (0.5, 0.25, 0.25),
    seed: int = 0,
    patience: int | None = None,
    success: Callable[[float], bool] = lambda score: score >= 1,
    concurrency: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    prices: Mapping[str, tuple[float, float]] | None = None,
    only_shown: bool = True,
    budget: Budget | None = None,
    dry_run: bool = False,
) -> Optimized | Plan:
    """Rewrite the parameters of an optimizer until a program does better on examples that it was not trained on.

    Each step runs the program on a minibatch, carries the feedback back, has the optimizer write new texts, and scores
    them on the examples that validate. They are kept if the mean is higher than the best so far; else the parameters
    get the best texts back. At the end the first and the best texts are scored on the examples that test, once, and the
    best ones are kept only if the difference shows there.

    Args:
        program: From an input to its prediction, a Variable that depends on the parameters; any callable.
        data: Pairs of an input and its target; or three lists of them under `training`, `validation` and `test`.
        metric: `metric(prediction, target)` returns a score, or a score and side information. The side information,
            as text, is the feedback on a prediction.
        optimizer: Who writes new texts, for the parameters that it was made for.
        steps: At most so many steps.
        batch: The examples of one step.
        parts: Which parts of the data train, validate and test.
        seed: What draws the parts and the minibatches.
        patience: End after so many steps in a row that were not accepted; None is never.
        success: Of a score, whether nothing needs to change; such a prediction gets no feedback.
        concurrency: How many calls may be in flight at once.
        checkpoint: A file that is written after each step. If it is there, the run goes on from it; with a `Cache`
            around the models, nothing of the step that was interrupted is paid twice.
        prices: For each model, by name, the price of a million tokens of messages and of replies.
        only_shown: Whether the best texts are kept only if they are shown to be better on the examples that test, by a
            95 % interval of the difference that lies above 0. Else the parameters get the first texts back. Without
            such examples the best texts are kept.
        budget: The budget that every model is asked within. If it does not allow for one comparison of a new text with
            the old one, that is said before a call is made. The program and the metric are run with stand-ins for the
            replies to find out, as with `dry_run`.
        dry_run: Ask no model, and return the plan: how many calls, tokens and how much money the run takes at most. The
            program and the metric are run with stand-ins for the replies; a model that they ask by other means than
            `gradspec.text` is asked all the same.

    Returns:
        The report; the parameters hold the texts in its `after`. With `dry_run` the plan; nothing has changed then.
        After an error they hold the texts that were best on the examples that validate, and a note of the error says
        how far the run was.

    Raises:
        BudgetError: the budget does not allow for one comparison.
        ValueError: the checkpoint is of another run, or a setting makes no sense.
        TypeError: the metric or the program returns something else, prices are not a price table, or a checkpoint is
            asked for and the data holds an object that has no `repr` of its own.

    Example:
        >>> from gradspec.text import Variable
        >>> from gradspec.text.optim import TextualGradientDescent, optimize
        >>> prompt = Variable("Say", role="prompt", requires_grad=True)
        >>> writer = TextualGradientDescent([prompt], lambda messages: "<new>Say please</new>")
        >>> def metric(prediction, target):
        ...     return float("please" in prediction), "It is not polite."
        >>> data = [(str(number), "") for number in range(40)]
        >>> found = optimize(lambda word: prompt + " " + word, data, metric, writer, steps=2)
        >>> prompt.data, found.validation_before.mean, found.validation_after.mean
        ('Say please', 0.0, 1.0)
    """
    _check(steps=steps, batch=batch, patience=patience)
    for name, call in (("program", program), ("metric", metric), ("success", success)):
        if not callable(call):
            raise TypeError(f"{name} is a callable, not {call!r}")
    if not all(hasattr(optimizer, name) for name in ("params", "step", "zero_grad", "state_dict", "load_state_dict")):
        raise TypeError(f"the optimizer is such as TextualGradientDescent([prompt], model), not {optimizer!r}")
    if budget is not None and not isinstance(budget, Budget):
        raise TypeError(f"budget is such as Budget(calls=100), not {budget!r}")
    check_prices({} if prices is None else prices)
    examples = split(data, parts, seed)
    params, file = optimizer.params, None if checkpoint is None else Path(checkpoint)
    if file is not None and not file.absolute().parent.is_dir():
        raise ValueError(f"the checkpoint {file} is a file in a folder that exists; make the folder first")
    if file is not None and (file.is_dir() or not os.access(file.absolute().parent, os.W_OK)):
        raise ValueError(f"the checkpoint {file} cannot be written: name a file in a folder that you may write to")
    settings = {"batch": batch, "seed": seed, "params": [param.data for param in params]}
    parted = [examples.training, examples.validation, examples.test]
    made_for = "" if file is None else fingerprint(settings, parted)
    state = (None if file is None else load(file, made_for)) or {}
    meter = Meter(state.get("models"))
    run = Run(program, metric, success, concurrency)
    if dry_run or (budget is not None and not state):
        plan = rehearsed(
            run,
            examples,
            optimizer,
            steps=steps if dry_run else min(steps, 1),
            batches=lambda step: minibatch(len(examples.training), batch, step, seed),
            prices=prices or {},
            budget=budget,
        )
        plan.check()
        if dry_run:
            return plan

    def put(texts: Sequence[str]) -> None:
        for param, text in zip(params, texts, strict=True):
            param.data = text

    def keep() -> None:
        if file is not None:
            save(file, {"fingerprint": made_for, "models": meter.counts, "optimizer": optimizer.state_dict(), **state})

    try:
        with metered(meter):
            if not state:
                texts = [str(param.data) for param in params]
                scores = run.scores(examples.validation)
                state = {"first": texts, "best": texts, "before": scores, "scores": scores, "steps": [], "stale": 0}
                keep()
            else:
                optimizer.load_state_dict(state.pop("optimizer"))
                for name in ("version", "fingerprint", "models"):
                    state.pop(name)
                put(state["best"])
            while (ended := _ended(state, steps, patience)) is None:
                places = minibatch(len(examples.training), batch, len(state["steps"]), seed)
                optimizer.zero_grad()
                training = run.learn([examples.training[place] for place in places])
                with overlapping(concurrency):
                    optimizer.step()
                texts = [str(param.data) for param in params]
                new = run.scores(examples.validation) if texts != state["best"] else None
                accepted = new is not None and fmean(new) > fmean(state["scores"])
                state["steps"].append(
                    {
                        "batch": places,
                        "training": fmean(training),
                        "validation": None if new is None else fmean(new),
                        "accepted": accepted,
                        "outcome": "no new text" if new is None else "accepted" if accepted else "no better; dropped",
                    }
                )
                if accepted:
                    state |= {"best": texts, "scores": new, "stale": 0}
                else:
                    state["stale"] += 1
                    put(state["best"])
                optimizer.zero_grad()
                keep()
            if examples.test and state.get("tested") != state["best"]:
                after = run.scores(examples.test)
                if "test" in state:
                    before = state["test"][0]
                else:
                    put(state["first"])
                    before = after if state["first"] == state["best"] else run.scores(examples.test)
                    put(state["best"])
                state |= {"test": [before, after], "tested": state["best"]}
                keep()
    except BaseException as error:
        if "best" in state:
            put(state["best"])  # no text is left in place that was not found to be better
            error.add_note(_so_far(state, file))
        raise
    gain = Gain.of(state["test"][0], state["test"][1], examples.test) if "test" in state else None
    if only_shown and gain is not None and not gain.shown:
        put(state["first"])
    return _report(state, params, ended, meter, prices or {}, gain)


def _check(*, steps: int, batch: int, patience: int | None) -> None:
    for name, value, least in (("steps", steps, 0), ("batch", batch, 1), ("patience", patience, 1)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise ValueError(f"{name} is a whole number, {least} or more, not {value!r}")


def _ended(state: Mapping[str, Any], steps: int, patience: int | None) -> str | None:
    if patience is not None and state["stale"] >= patience:
        return f"no better text in {state['stale']} steps"
    return f"{len(state['steps'])} steps are made" if len(state["steps"]) >= steps else None


def _so_far(state: Mapping[str, Any], file: Path | None) -> str:
    """Say how far a run was that an error ended, and what the parameters hold."""
    done, before, now = len(state["steps"]), fmean(state["before"]), fmean(state["scores"])
    kept = "the first texts" if state["first"] == state["best"] else "the texts that did best there, which no test has"
    again = "" if file is None else f"; run it again with the checkpoint {file} to go on"
    said = f"{done} step{'' if done == 1 else 's'} were made, validation {before:.3f} before and {now:.3f} after"
    return f"{said}: the parameters hold {kept}{again}"


def _report(
    state: Mapping[str, Any],
    params: Sequence[Variable],
    ended: str,
    meter: Meter,
    prices: Mapping[str, Any],
    gain: Gain | None,
) -> Optimized:
    before, after = state.get("test") or (None, None)
    return Optimized(
        before=tuple(state["first"]),
        best=tuple(state["best"]),
        after=tuple(str(param.data) for param in params),
        roles=tuple(param.role for param in params),
        validation_before=Score.of(state["before"]),
        validation_after=Score.of(state["scores"]),
        test_before=None if before is None else Score.of(before),
        test_after=None if after is None else Score.of(after),
        gain=gain,
        steps=tuple(step_of(step) for step in state["steps"]),
        ended=ended,
        models={name: (row[0], row[1], row[2]) for name, row in sorted(meter.counts.items())},
        prices=dict(prices),
    )
