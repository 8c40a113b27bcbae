"""The ranks that tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from distributed.pool import Pool


def _pool(size: int) -> Iterator[Pool]:
    pool = Pool(size)
    yield pool
    pool.close()


@pytest.fixture
def one() -> Iterator[Pool]:
    yield from _pool(1)


@pytest.fixture
def three() -> Iterator[Pool]:
    yield from _pool(3)


@pytest.fixture(scope="session")
def two() -> Iterator[Pool]:
    yield from _pool(2)


@pytest.fixture(scope="session")
def four() -> Iterator[Pool]:
    yield from _pool(4)


@pytest.fixture(params=["two", pytest.param("four", marks=pytest.mark.slow)])
def pool(request: pytest.FixtureRequest) -> Pool:
    """Two ranks, then four."""
    return request.getfixturevalue(request.param)
