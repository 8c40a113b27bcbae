"""What the first page says of gradcheck is so: it rejects the wrong Function and the mended one alike."""

from __future__ import annotations

import runpy
from typing import Any

import pytest
import torch

from gradspec.report import read_record
from pages.blocks import DOCS

EXAMPLE = DOCS / "examples" / "specs" / "scale_gradient.py"
RECORD = read_record(DOCS / "records" / "first_failure.json")


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


@pytest.mark.parametrize("name", ["ScaleGradient", "Mended"])
def test_gradcheck_rejects_both_functions(names: dict[str, Any], name: str) -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)

    assert not torch.autograd.gradcheck(lambda x: names[name].apply(x, 0.5), (x,), raise_exception=False)


def test_the_record_breaks_the_wrong_function_alone_and_names_the_factor() -> None:
    (failure,) = RECORD.failures

    assert (failure.spec, failure.law) == ("scale_gradient", "vjp")
    assert failure.finding.likely == "every element is off by the factor 4, which is 1 / `factor` squared"
    assert {verdict.spec for verdict in RECORD.verdicts} == {"scale_gradient", "scale_gradient, mended"}


def test_the_line_of_the_mistake_is_marked() -> None:
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    body = EXAMPLE.read_text(encoding="utf-8").partition("class ScaleGradient")[2].splitlines()
    marked = int(text.partition(":emphasize-lines: ")[2].split()[0])

    assert body[marked - 1].strip() == "return grad_y / ctx.factor, None"
