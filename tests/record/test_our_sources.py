"""Each spec of ours has a key, and a source without roots is read back as it was written."""

from __future__ import annotations

import pytest

from gradspec._engine._sources import sources
from gradspec._record import Source
from gradspec.functions import FUNCTIONS
from gradspec.nn import MODULES
from gradspec.operators import OPERATORS
from gradspec.text import TEXTS


@pytest.mark.parametrize("spec", [*FUNCTIONS, *OPERATORS, *MODULES, *TEXTS], ids=lambda spec: spec.name)
def test_a_spec_of_ours_has_a_key(spec):
    (source,) = (found for name, found in sources([spec], ()).items() if name == f"spec {spec.name}")

    assert source.key
    assert Source.from_dict(source.to_dict()) == source


def test_a_source_that_nothing_is_known_of_is_read_back():
    assert Source.from_dict(Source(roots=()).to_dict()) == Source(roots=())
