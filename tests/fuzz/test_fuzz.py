"""Each function of ours is, behind transforms, what its reference by construction is.

GRADSPEC_FUZZ_EXAMPLES says how many examples of each are tried; `nox -s lab -- fuzz` tries 10,000.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fuzz.makers import MAKERS
from fuzz.search import search
from gradspec.functions import FUNCTIONS

EXAMPLES = int(os.environ.get("GRADSPEC_FUZZ_EXAMPLES", "40"))


SEARCHED = [spec for spec in FUNCTIONS if spec.name in MAKERS]
FLOORS = tomllib.loads((Path(__file__).parents[1] / "floors.toml").read_text(encoding="utf-8"))


def test_that_only_a_new_function_is_left_out() -> None:
    known = [spec.name for spec in FUNCTIONS if f"function {spec.name}" in FLOORS["cases"]]
    assert [name for name in known if name not in MAKERS] == []


@pytest.mark.parametrize("spec", SEARCHED, ids=lambda spec: spec.name)
def test_that_a_function_is_its_reference_behind_transforms(spec: Any) -> None:
    search(spec, EXAMPLES)
