"""Checks run in forks of a process that has compiled before."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _compiled_before(compiler):
    pass
