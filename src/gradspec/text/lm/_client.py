"""One client around any model: schema, cache, retries and budget, in this order from outside in."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from gradspec.text._events import CacheHit, Retried, emit, watched
from gradspec.text._scheduling._run_sync import loop_runs
from gradspec.text._scheduling._stop import check_stopped
from gradspec.text.lm import _meter
from gradspec.text.lm._budget import Budget
from gradspec.text.lm._cache import Cache
from gradspec.text.lm._client_check import check_client
from gradspec.text.lm._correction import correction
from gradspec.text.lm._deadline import deadline
from gradspec.text.lm._errors import BudgetError, ModelTimeoutError, SchemaError, StatusError
from gradspec.text.lm._model import Completion, Messages, Model, Usage, acomplete, as_messages, complete
from gradspec.text.lm._queue import Reservation
from gradspec.text.lm._rate import RateLimit
from gradspec.text.lm._request import Request
from gradspec.text.lm._retry import Retry
from gradspec.text.lm._schema import parse
from gradspec.text.lm._schema_check import check_schema
from gradspec.text.lm._stand_in import stand_in
from gradspec.text.lm._steps import Ask, Join, Sleep, Steps, adrive, drive
from gradspec.text.lm._tape import tape

NOTHING = Usage(prompt_tokens=0, completion_tokens=0)


class Client:
    """Call any model with retries, a cache, a hard budget and replies checked against a schema; itself a model.

    Args:
        model: Any callable, plain or async; it is given the messages, the options, and `schema` where one is asked for.
        name: What the model is to the cache. A model with an `identity`, such as `OpenAIModel`, needs none.
        cache: Where replies are kept; None, the default, keeps nothing.
        budget: The limit on calls and tokens; several clients may share one.
        retry: How failed calls are repeated.
        rate: How many requests and tokens a minute; several clients may share one limit.
        schema_attempts: How often a reply of the wrong schema is asked for, the first included. The model is told what
            was wrong, so each attempt is a request of its own.
        options: Options of every call, such as `{"temperature": 0}`; those of a call take precedence.

    Examples:
        >>> from gradspec.text.lm import RuleModel
        >>> client = Client(RuleModel({"score": '{"score": 7}'}))
        >>> client("Give a score.", schema={"required": ["score"]}).value
        {'score': 7}
    """

    def __init__(
        self,
        model: Model,
        *,
        name: str | None = None,
        cache: Cache | None = None,
        budget: Budget | None = None,
        retry: Retry | None = None,
        rate: RateLimit | None = None,
        schema_attempts: int = 2,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        check_client(model, schema_attempts, cache=cache, budget=budget, retry=retry, rate=rate, options=options)
        identity = getattr(model, "identity", None) if name is None else {"name": name}
        if cache is not None and identity is None:
            raise ValueError('a cache must know who answered: pass Client(..., name="my-model-v1")')
        self._model = model
        self._identity: Mapping[str, Any] = identity or {}
        self._cache = cache
        self._budget = budget or Budget()
        self._retry = retry or Retry()
        self._rate = rate
        self._schema_attempts = schema_attempts
        self._options = dict(options or {})

    def __repr__(self) -> str:
        return f"Client({self._model!r}, cache={self._cache!r}, budget={self._budget!r}, retry={self._retry!r})"

    #: A client counts its replies itself: one for each attempt at a schema.
    counts = True

    @property
    def identity(self) -> Mapping[str, Any]:
        """The plain data by which a cache knows the model."""
        return self._identity

    @property
    def budget(self) -> Budget:
        """The budget, with what was spent of it."""
        return self._budget

    def __call__(
        self, messages: Messages, *, schema: Mapping[str, Any] | None = None, sample: int = 0, **options: Any
    ) -> Completion:
        """Return the completion of messages.

        Args:
            messages: A string, or a list of `Message` or mappings with `role` and `content`.
            schema: The JSON schema that the reply must satisfy; its data is the completion's `value`.
            sample: Which of several replies to the same request, where a cache would give the first again.
            **options: What goes to the model beside the messages: temperature, max_tokens...

        Raises:
            ModelError: And its kinds: what failed, and whether a later call may work.
        """
        request, until = self.request(messages, schema=schema, sample=sample, **options), self._until()
        answer = stand_in()
        if answer is not None:
            return answer(self, request.messages, {"schema": schema, "sample": sample, **options})

        def ask(request: Request) -> Completion:
            with deadline(until), _meter.paused(_meter.name_of(self)), self._budget.call():
                return complete(self._model, request.messages, **request.arguments)

        # On the thread of an event loop, the calls in flight may be tasks of that loop: to wait for them would not end.
        with self._budget.call() if loop_runs() else nullcontext():
            return drive(self._checked(request, until), ask)

    async def acall(
        self, messages: Messages, *, schema: Mapping[str, Any] | None = None, sample: int = 0, **options: Any
    ) -> Completion:
        """Return the completion of messages, from an event loop; the same arguments, results and errors."""
        request, until = self.request(messages, schema=schema, sample=sample, **options), self._until()
        answer = stand_in()
        if answer is not None:
            return answer(self, request.messages, {"schema": schema, "sample": sample, **options})

        async def ask(request: Request) -> Completion:
            with deadline(until), _meter.paused(_meter.name_of(self)), self._budget.call():
                return await acomplete(self._model, request.messages, **request.arguments)

        return await adrive(self._checked(request, until), ask)

    @property
    def cache(self) -> Cache | None:
        """Where replies are kept."""
        return self._cache

    @property
    def schema_attempts(self) -> int:
        """How often a reply of the wrong schema is asked for."""
        return self._schema_attempts

    def request(
        self, messages: Messages, *, schema: Mapping[str, Any] | None = None, sample: int = 0, **options: Any
    ) -> Request:
        """Return what a call would ask."""
        if schema is not None:
            check_schema(schema)
        return Request(
            identity=self._identity,
            messages=as_messages(messages),
            options={**self._options, **options},
            schema=schema,
            sample=sample,
        )

    def _until(self) -> float | None:
        return None if self._retry.deadline is None else time.monotonic() + self._retry.deadline

    def _checked(self, request: Request, until: float | None) -> Steps[Completion]:
        """Ask until the reply satisfies the schema."""
        for attempt in range(1, self._schema_attempts + 1):
            completion = yield from self._kept(request, until)
            _meter.count(self, completion.usage)
            if completion.cached and watched():
                emit(CacheHit(model=_meter.name_of(self)))
            if request.schema is None:
                return completion
            value, problems = parse(completion.text, request.schema)
            if not problems:
                return Completion(**{**vars(completion), "value": value})
            if attempt < self._schema_attempts:
                request = request.continued(*correction(completion.text, problems))
        cut = " It was cut at max_tokens." if completion.finish_reason == "length" else ""
        raise SchemaError(
            f"the reply does not satisfy the schema, in {attempt} of {attempt} attempts: {'; '.join(problems[:5])}."
            f"{cut} It begins with {completion.text[:200]!r}",
            text=completion.text,
            problems=tuple(problems),
        )

    def _kept(self, request: Request, until: float | None) -> Steps[Completion]:
        """Ask the cassette first, and then the cache."""
        cassette = tape()
        if cassette is None:
            return (yield from self._got(request, until, []))
        take = cassette.take(self, request.messages, request.options, schema=request.schema, sample=request.sample)
        found = take.found()
        if found is not None:
            return found
        with take.recorded() as keep:
            return keep((yield from self._got(request, until, take.retried)))

    def _got(self, request: Request, until: float | None, retried: list[str]) -> Steps[Completion]:
        paid = self._paid(request, until, retried)
        return (yield from paid if self._cache is None else self._cache.through(request, paid, until))

    def _paid(self, request: Request, until: float | None, retried: list[str]) -> Steps[Completion]:
        """Make the call, and again while it fails for a passing reason; each attempt reserves from the budget."""
        started, attempt = time.monotonic(), 0
        failed: BaseException | None = None
        while True:
            attempt += 1
            check_stopped()
            yield from self._placed(request, until)
            try:
                reservation = yield from self._reserved(request, until)
            except BudgetError as over:
                if failed is None:
                    raise
                raise BudgetError(f"{over}; the call before failed: {failed}") from failed
            try:
                completion: Completion = yield Ask(request=request)
            except BaseException as error:
                # A refused call cost nothing; of any other it is not known.
                self._budget.settle(reservation, NOTHING if isinstance(error, StatusError) else None)
                delay = self._retry.wait(attempt, error) if isinstance(error, Exception) else None
                if delay is None or (until is not None and time.monotonic() + delay >= until):
                    if attempt > 1 or delay is not None:
                        took = time.monotonic() - started
                        error.add_note(f"given up after {attempt} calls in {took:.1f} s ({self._retry})")
                    raise
                failed = error
                retried.append(type(error).__name__)
                if watched():
                    name, kind = _meter.name_of(self), type(error).__name__
                    emit(Retried(model=name, attempt=attempt, delay=delay, error=kind))
            else:
                self._budget.settle(reservation, completion.usage)
                return completion
            yield Sleep(seconds=delay)

    def _reserved(self, request: Request, until: float | None) -> Steps[Reservation]:
        """Reserve from the budget; calls in flight may have to end first."""
        place = self._budget.reserve(request)
        if place.done():
            return place.result()
        try:
            reservation: Reservation = yield Join(future=place, until=until)
        except BaseException as error:
            self._budget.withdraw(place)
            if isinstance(error, TimeoutError):
                raise ModelTimeoutError(f"{self._budget!r} had too few tokens left before the deadline") from None
            raise
        return reservation

    def _placed(self, request: Request, until: float | None) -> Steps[None]:
        """Wait for a place under the rate limit."""
        while self._rate is not None and (delay := self._rate.take(request)) > 0:
            if until is not None and time.monotonic() + delay >= until:
                raise ModelTimeoutError(f"{self._rate} has no place for the call before its deadline")
            yield Sleep(seconds=delay)
