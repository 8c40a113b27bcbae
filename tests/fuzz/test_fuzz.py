"""Each function of ours is, behind transforms, what its reference by construction is.

GRADSPEC_FUZZ_EXAMPLES says how many examples of each are tried; `nox -s fuzz` tries 10,000.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from fuzz.search import search
from gradspec.functions import FUNCTIONS

EXAMPLES = int(os.environ.get("GRADSPEC_FUZZ_EXAMPLES", "40"))


@pytest.mark.parametrize("spec", FUNCTIONS, ids=lambda spec: spec.name)
def test_that_a_function_is_its_reference_behind_transforms(spec: Any) -> None:
    search(spec, EXAMPLES)
