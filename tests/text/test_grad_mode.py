"""no_grad, enable_grad and set_grad_enabled as blocks and decorators, in threads, tasks and generators."""

from __future__ import annotations

import asyncio
import threading

import pytest

from gradspec.text import enable_grad, is_grad_enabled, no_grad, set_grad_enabled


def test_blocks_nest_and_end_where_they_began() -> None:
    with no_grad():
        with enable_grad():
            assert is_grad_enabled()
        assert not is_grad_enabled()
        with set_grad_enabled(True), no_grad():
            assert not is_grad_enabled()
        assert not is_grad_enabled()
    assert is_grad_enabled()


def test_an_exception_ends_a_block_too() -> None:
    with pytest.raises(KeyError), no_grad():
        raise KeyError
    assert is_grad_enabled()


def test_one_object_may_be_entered_twice() -> None:
    off = no_grad()
    with off, off:
        assert not is_grad_enabled()
    assert is_grad_enabled()


def test_set_grad_enabled_as_a_call() -> None:
    set_grad_enabled(False)
    try:
        assert not is_grad_enabled()
    finally:
        set_grad_enabled(True)
    assert is_grad_enabled()


@pytest.mark.parametrize(
    ("decorator", "inside"),
    [
        (lambda: no_grad, False),
        (lambda: no_grad(), False),
        (lambda: enable_grad, True),
        (lambda: enable_grad(), True),
        (lambda: set_grad_enabled(False), False),
    ],
    ids=["@no_grad", "@no_grad()", "@enable_grad", "@enable_grad()", "@set_grad_enabled(False)"],
)
def test_decorators(decorator, inside) -> None:
    @decorator()
    def look(name):
        """Look."""
        return name, is_grad_enabled()

    @decorator()
    async def look_later():
        await asyncio.sleep(0)
        return is_grad_enabled()

    @decorator()
    def steps():
        try:
            sent = yield is_grad_enabled()
            yield sent, is_grad_enabled()
        except KeyError:
            yield "caught"

    with set_grad_enabled(not inside):
        assert (look("x"), look.__doc__) == (("x", inside), "Look.")
        assert asyncio.run(look_later()) is inside
        generator = steps()
        assert next(generator) is inside
        assert is_grad_enabled() is not inside
        assert generator.send("sent") == ("sent", inside)
        assert generator.throw(KeyError) == "caught"
        assert list(generator) == []
        assert is_grad_enabled() is not inside


def test_a_closed_generator_is_closed_in_its_mode() -> None:
    seen = []

    @no_grad
    def steps():
        try:
            yield
        finally:
            seen.append(is_grad_enabled())

    generator = steps()
    next(generator)
    generator.close()
    assert seen == [False]


def test_each_thread_and_each_task_has_its_own_mode() -> None:
    seen = []
    with no_grad():
        thread = threading.Thread(target=lambda: seen.append(is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]

    async def task(mode: bool) -> bool:
        with set_grad_enabled(mode):
            await asyncio.sleep(0.001)
            return is_grad_enabled()

    async def both() -> list[bool]:
        return await asyncio.gather(task(True), task(False), task(True))

    assert asyncio.run(both()) == [True, False, True]
