"""A long run says on stderr how far it is, a short one in a pipe says nothing."""

from __future__ import annotations

import pytest

from gradspec.cli import _screen


@pytest.mark.parametrize(
    ("total", "lines"),
    [
        (_screen.LONG - 1, []),
        (1000, [f"{done:,} of 1,000 checks done · at {done}" for done in range(0, 1000, 100)]),
    ],
)
def test_a_pipe_gets_a_line_for_each_tenth_of_a_long_run(capsys, total, lines):
    with _screen.progress() as tell:
        for done in range(total):
            tell(done, total, f"at {done}")
        tell(total, total, "done")

    assert capsys.readouterr().err.splitlines() == lines
