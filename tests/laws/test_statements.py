"""What a law states does not change unnoticed: the statements stand a second time, in `statements.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from gradspec.laws import LAWS

STATED = tomllib.loads(Path(__file__).with_name("statements.toml").read_text(encoding="utf-8"))
BY_NAME = {law.name: law for law in LAWS}


@pytest.mark.parametrize("name", STATED)
def test_a_law_states_what_it_stated(name: str) -> None:
    assert name in BY_NAME, f"law {name!r} is gone from LAWS: take it out of statements.toml too, and say why"
    stated, now = STATED[name], BY_NAME[name].statement
    assert now == stated, f"the statement of {name} has changed: if that is meant, change statements.toml too"


def test_every_law_is_in_the_list() -> None:
    assert [name for name in BY_NAME if name not in STATED] == [], "add its statement to statements.toml"
