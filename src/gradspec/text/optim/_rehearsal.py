"""A run in which every model is answered by a stand-in, to see what it would ask."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradspec.text._graph._variable import Variable
from gradspec.text._scheduling._position import at
from gradspec.text.lm._budget import Budget, bounds
from gradspec.text.lm._client import Client
from gradspec.text.lm._meter import name_of
from gradspec.text.lm._model import Completion, Message
from gradspec.text.lm._request import Request
from gradspec.text.lm._schema import parse
from gradspec.text.lm._stand_in import answered_by, instance
from gradspec.text.ops._template import lost_places
from gradspec.text.optim._examples import Examples
from gradspec.text.optim._gain import keys_of
from gradspec.text.optim._plan import Plan, plan_of
from gradspec.text.optim._scores import Run
from gradspec.text.optim._tgd import TextualGradientDescent

#: The bytes of a stand-in for a reply that has no limit.
UNLIMITED = 64
#: The tokens that say what is wrong with a reply that misses its schema.
CORRECTION = 1024


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A call that would be made."""

    #: The model's name.
    model: str
    #: Calls at most: one for each attempt at a schema.
    calls: int
    #: Tokens of the messages and of the replies at most; None where the reply has no limit.
    tokens: tuple[int, int] | None
    #: The request, for a client whose cache would give an equal one the same reply; else None.
    key: str | None
    #: What the call is counted in.
    budget: Budget | None


class Rehearsal:
    """Answers in the place of every model, and notes what was asked.

    A stand-in has as many bytes as the reply may have tokens. So a later request that holds it is bounded too: no token
    is shorter than a byte.
    """

    def __init__(self, params: Sequence[Variable] = ()) -> None:
        """Take what is rewritten: a new text of a template has the places that the program fills."""
        self._params = params
        #: What the part in hand has asked so far.
        self.asked: list[Asked] = []
        self.begin(writing=False)

    def begin(self, *, writing: bool) -> None:
        """Begin a part; one that writes new texts writes each on the second attempt, so that the repair is counted."""
        self.asked = []
        self._writing, self._repaired = writing, True

    def __call__(self, model: Any, messages: tuple[Message, ...], options: Mapping[str, Any]) -> Completion:
        """Answer a call."""
        schema = options.get("schema")
        cache, budget, attempts = None, None, 1
        if isinstance(model, Client):
            request = model.request(messages, **options)
            cache, budget, attempts = model.cache, model.budget, model.schema_attempts if schema is not None else 1
        else:
            plain = {name: value for name, value in options.items() if name not in ("schema", "sample")}
            request = Request(identity={}, messages=messages, options=plain, schema=schema)
        kept = None if cache is None or cache.mode == "refresh" else cache.get(request.canonical)
        if kept is not None:
            return kept if schema is None else Completion(**{**vars(kept), "value": parse(kept.text, schema)[0]})
        try:
            said, replied = bounds(request)
        except ValueError:
            tokens, replied = None, UNLIMITED
        else:  # each further attempt is told the reply before and what is wrong with it
            more = (replied + CORRECTION) * attempts * (attempts - 1) // 2
            tokens = said * attempts + more, replied * attempts
        self.asked.append(
            Asked(
                model=name_of(model),
                calls=attempts,
                tokens=tokens,
                key=None if cache is None else request.canonical,
                budget=budget,
            )
        )
        return self._reply(schema, replied, "".join(str(message.content) for message in messages))

    def _reply(self, schema: Mapping[str, Any] | None, length: int, said: str) -> Completion:
        if schema is not None:
            value = instance(schema)
            return Completion(text=json.dumps(value).ljust(length), value=value)
        self._repaired = not self._repaired
        text = "x" * length
        if self._writing:
            places = "".join(p for param in self._params if str(param.data) in said for p in lost_places(param, ""))
            text = f"{places}{text}"[: max(length, len(places))]
        return Completion(text=f"<new>{text}</new>" if self._writing and self._repaired else text)


def rehearsed(
    run: Run,
    examples: Examples,
    optimizer: TextualGradientDescent,
    *,
    steps: int,
    batches: Callable[[int], Sequence[int]],
    prices: Mapping[str, tuple[float, float]],
    budget: Budget | None,
) -> Plan:
    """Run an optimization with stand-ins for all replies, and leave the parameters and the optimizer as they were.

    Raises:
        ValueError: the program or the optimizer makes nothing of a stand-in, or asks a model outside of the budget.
    """
    params, state = optimizer.params, optimizer.state_dict()
    before = [(param.data, param.grad) for param in params]
    stand_in = Rehearsal(params)
    remarks: dict[str, None] = {}

    def metric(prediction: Any, target: Any) -> tuple[float, str]:
        try:
            found = run.metric(prediction, target)
        except Exception as error:
            remark = f"the metric raised {type(error).__name__} on a stand-in; what it asks after that is not counted"
            remarks[remark] = None
            found = 0.0
        said = str(found[1]) if isinstance(found, tuple) and len(found) == 2 else f"The score is {found}."
        return 0.0, said or "x"

    trial = Run(run.program, metric, lambda score: False, 1)

    def asked(call: Callable[[], object], *, writing: bool = False) -> list[Asked]:
        stand_in.begin(writing=writing)
        try:
            call()
        except Exception as error:
            who = "optimizer" if writing else "program"
            raise ValueError(
                f"the {who} cannot be rehearsed: on a stand-in for a reply it raised {type(error).__name__}: {error}"
            ) from error
        return stand_in.asked

    def put_longest() -> None:
        """Give each parameter the longest text that it may have from here on."""
        for param, (first, _) in zip(params, before, strict=True):
            param.data = max(str(first), str(param.data), key=lambda text: len(text.encode("utf-8", "surrogatepass")))

    parts: list[tuple[str, list[Asked]]] = []
    least: list[Asked] = []
    try:
        with answered_by(stand_in), at(None):
            parts.append(("first texts", asked(lambda: trial.scores(examples.validation))))
            for step in range(steps):
                batch = [examples.training[place] for place in batches(step)]
                optimizer.zero_grad()
                forward = asked(lambda batch=batch: trial.scores(batch))  # type: ignore[misc]
                learnt = asked(lambda batch=batch: trial.learn(batch))  # type: ignore[misc]
                written = asked(optimizer.step, writing=True)
                put_longest()
                compared = asked(lambda: trial.scores(examples.validation))
                parts += [(f"step {step + 1}, propose", learnt + written), (f"step {step + 1}, compare", compared)]
                if not step:
                    least = [*parts[0][1], *forward, *learnt[len(forward) :][:1], *written[:1], *compared]
            if examples.test:
                parts.append(("test", asked(lambda: trial.scores(examples.test)) * 2))
    finally:
        optimizer.load_state_dict(state)
        for param, (data, grad) in zip(params, before, strict=True):
            param.data, param.grad = data, grad
    every = [call for _, calls in parts for call in calls]
    for call in every if budget is not None else ():
        if call.budget is not budget:
            raise ValueError(
                f"the model {call.model!r} is asked outside of the budget; put it in a Client(..., budget=budget)"
            )
    limits = [found for found in {call.budget for call in every} if found is not None and found.left != (None, None)]
    if budget is None and len(limits) > 1:
        remarks["the models have several budgets; pass budget= to say which one must allow for a comparison"] = None
    used = budget or (limits[0] if len(limits) == 1 else None)
    return plan_of(parts, least, prices, used, len(set(keys_of(examples.test))), [*remarks])
