"""An operator whose home Python does not know, as of one in C++, is found again by the path that an audit is given."""

import re

import pytest
import torch

from gradspec import audit
from gradspec._audit._subject import home_in
from gradspec._registry._targets import load_attribute
from gradspec.law import Status
from gradspec.laws import LAWS

EXPORTED = [law for law in LAWS if law.name == "exported_operator"]
#: Registered as C++ does it: by dispatch keys, and with nothing that names a file.
OPS = """
import torch

LIBRARY = torch.library.Library("homeless", "FRAGMENT")
LIBRARY.define("doubled(Tensor x) -> Tensor")
LIBRARY.impl("doubled", lambda x: 2 * x, "CPU")
LIBRARY.impl("doubled", torch.empty_like, "Meta")
torch.library.register_autograd("homeless::doubled", lambda ctx, y_bar: 2 * y_bar)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Return what the command line takes: a file and the operator that it registers, which is registered."""
    file = tmp_path_factory.mktemp("ops") / "homeless_ops.py"
    file.write_text(OPS, encoding="utf-8")
    target = f"{file}:homeless::doubled"
    load_attribute(target)
    return target


def test_the_home_of_an_operator_is_what_its_path_names(path):
    assert home_in(path) == "homeless_ops"
    assert home_in("gradspec.law:homeless::doubled") == "gradspec.law"
    assert home_in("torch::relu") == "torch"
    assert home_in("no_such_module::relu") == home_in("gradspec.functions:GradFactor") == home_in("") == ""


def test_a_proposal_imports_where_an_operator_is_defined_if_no_module_is_named():
    operator = load_attribute("gradspec.operators:gradspec::grad_factor")
    found = audit(operator, ["(randn(2, 3), 0.5)"], laws=[law for law in LAWS if law.name == "schema"], jobs=1)

    assert "import gradspec.operators._grad_factor  # registers gradspec::grad_factor" in found.proposal


@pytest.mark.slow
def test_a_new_process_imports_the_file_of_the_path(path):
    found = audit(torch.ops.homeless.doubled, ["(randn(2, 3),)"], laws=EXPORTED, path=path, jobs=1)

    assert [verdict.status for verdict in found.report.verdicts] == [Status.HOLDS]


@pytest.mark.slow
def test_that_nothing_registers_the_operator_in_a_new_process_is_said(path):
    found = audit(torch.ops.homeless.doubled, ["(randn(2, 3),)"], laws=EXPORTED, jobs=1)

    (verdict,) = found.report.verdicts
    assert verdict.status is Status.NOT_PROMISED
    assert re.search(r"homeless::doubled is not registered by importing .+: import its", verdict.finding.message)
