"""The spec that an audit proposes is always there, can be imported, and finds what the audit found."""

from __future__ import annotations

import functools

import pytest
import torch
from torch.autograd import Function

from gradspec import FunctionSpec, ModuleSpec, audit, verify
from gradspec.law import Status
from gradspec.laws import LAWS

#: Those of plain training; what a remark or a cause says later is no verdict.
CHEAP = [law for law in LAWS if law.cost == "ms" and law.capability is None]


class LSQ(Function):
    """A spec of that name would hide the class."""

    @staticmethod
    def forward(ctx, x, step):
        ctx.save_for_backward(x, step)
        return (x / step).round() * step

    @staticmethod
    def backward(ctx, y_bar):
        x, step = ctx.saved_tensors
        return y_bar, (((x / step).round() - x / step) * y_bar).sum()


class Lost(Function):
    """Its gradient is wrong, and its cotangent is not what it was."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.log()

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar.mul_(2) / x


def gain(x, gain):
    return x * gain.cos()


def cases(x):
    return x.cosh()


def of_options(x, reduce, alpha):
    return reduce(x, 0) * alpha


def to_dict(x):
    return {"sum": x.sum(), "all": [x * 2]}


def draws(x):
    return x * torch.rand_like(x)


CLOSE = torch.rand(5, 8, dtype=torch.float64) * 0.5 + 0.25
NOTHING = torch.zeros(5, 8, dtype=torch.float64)


def made(found):
    """What the text of a proposal holds, without anything that it does not import."""
    scope = {}
    exec(found.proposal, scope)
    return next(value for value in scope.values() if isinstance(value, FunctionSpec | ModuleSpec))


def failures(report):
    return {(v.law, v.case) for v in report.failures if v.status is Status.BROKEN}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "case"),
    [
        (LSQ, "(randn(4), tensor(0.3))"),
        (Lost, (CLOSE,)),
        (Lost, "(rand(4),)"),
        (gain, "(randn(3), tensor(0.3))"),
        (cases, "(randn(3),)"),
        (torch.atanh, (CLOSE,)),
        (to_dict, "(randn(3),)"),
        (torch.nn.functional.silu, "(randn(2, 3),)"),
    ],
)
def test_a_proposal_is_imported_and_finds_what_the_audit_found(function, case):
    found = audit(function, [case], laws=CHEAP)
    report = verify([made(found)], CHEAP)

    assert not any("cannot be imported" in remark for remark in found.remarks)
    assert failures(report) - {("surrogate", v.case) for v in report.verdicts} == {
        (law, case) for law, case in failures(found.report) if law != "surrogate"
    }


def test_a_spec_of_a_function_in_capitals_does_not_hide_it():
    proposal = audit(LSQ, ["(randn(4), tensor(0.3))"], laws=CHEAP, path="ops.py:LSQ").proposal

    assert "from ops import LSQ  #" in proposal
    assert "LSQ_SPEC = FunctionSpec(" in proposal


def test_what_is_an_apply_by_its_path_is_called_as_it_is():
    proposal = audit(LSQ.apply, ["(randn(4), tensor(0.3))"], laws=CHEAP, path="ops.py:quantize").proposal

    assert "from ops import quantize" in proposal
    assert "    function=quantize,\n" in proposal


def test_a_parameter_does_not_hide_the_function():
    assert "import gain as gain_\n" in audit(gain, ["(randn(3), tensor(0.3))"], laws=CHEAP).proposal


def test_a_tensor_that_is_drawn_anew_is_a_todo():
    found = audit(Lost, [(CLOSE,)], laws=CHEAP)

    todo = "write `x` of case 'call 1', which is drawn anew"
    assert found.remarks_of_proposal == (f"TODO in the proposed spec: {todo}.",)
    assert f"    # TODO: {todo}\n    yield Case(" in found.proposal
    assert audit(torch.exp, [(NOTHING,)], laws=CHEAP).remarks_of_proposal == ()


def test_an_argument_that_no_text_makes_is_a_todo():
    found = audit(of_options, [(torch.randn(3), torch.sum, 2.0)], laws=CHEAP)

    todo = "write `reduce` of case 'call 1', which is of builtin_function_or_method, and not written"
    assert found.remarks_of_proposal == (f"TODO in the proposed spec: {todo}.",)
    assert ", ..., 2.0)" in found.proposal
    assert made(found).name == "of_options"


@pytest.mark.parametrize(
    ("function", "todo"),
    [
        (lambda x: x.sin(), "define function"),
        (functools.partial(torch.sin), "define partial"),
    ],
    ids=["lambda", "partial"],
)
def test_what_has_no_import_path_is_a_todo(function, todo):
    found = audit(function, ["(randn(3),)"], laws=CHEAP)

    assert found.remarks_of_proposal == (f"TODO in the proposed spec: {todo}.",)
    assert f"\n# TODO: {todo}\n" in found.proposal
    assert compile(found.proposal, "it", "exec")


@pytest.mark.slow
def test_a_file_that_no_import_names_is_a_todo():
    found = audit(LSQ, ["(randn(4), tensor(0.3))"], laws=CHEAP, path="my ops.py:LSQ")

    todo = "rename my ops.py, which is not the name of a module, and import LSQ from it"
    assert found.remarks_of_proposal == (f"TODO in the proposed spec: {todo}.",)
    assert f"# TODO: {todo}\n" in found.proposal


def test_a_law_to_which_the_calls_show_nothing_is_a_todo_of_the_cases():
    found = audit(Forgets, ["(ones(3), ones(3))"], laws=CHEAP)

    assert Status.VACUOUS in {v.status for v in found.report.of(law="layout")}
    assert "which shows nothing on these\n    yield read_case(" in found.proposal
    (said,) = found.remarks_of_proposal
    assert "say whether `weight` is trained" in said


class Forgets(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(weight)
        return x * weight

    @staticmethod
    def backward(ctx, y_bar):
        (weight,) = ctx.saved_tensors
        return y_bar * weight, None


def test_a_gradient_that_is_lost_is_in_the_proposal_and_found_by_it():
    found = audit(Forgets, ["(randn(3), randn(3))"], laws=CHEAP, wrt=("weight",))
    report = verify([made(found)], CHEAP)

    assert "    wrt=('x', 'weight'),\n" in found.proposal
    assert "surrogate" in {v.law for v in found.report.failures}
    assert {v.law for v in report.failures} & {"surrogate", "vjp"}


def test_a_function_that_keeps_state_needs_a_core():
    calls = []

    def counts(x):
        calls.append(x)
        return len(calls) * x

    found = audit(counts, ["(randn(3),)"], laws=CHEAP)

    (remark,) = found.remarks_of_proposal
    assert remark.startswith("TODO in the proposed spec: give what it keeps as an argument")
    assert "\n# TODO: give what it keeps" in found.proposal


def test_a_function_that_draws_is_proposed_with_its_draws_replayed():
    found = audit(draws, ["(randn(3),)"], laws=CHEAP)

    assert "\n    noise='replayed',  # calls are compared with the same draws\n" in found.proposal
    assert not any(remark.startswith("TODO") for remark in found.remarks_of_proposal)


def test_a_module_is_proposed_as_one():
    layer = torch.nn.Linear(3, 2)
    found = audit(layer, ["(randn(4, 3),)", (torch.randn(2, 3, dtype=torch.float64),)], laws=CHEAP, name="layer")

    assert found.remarks_of_proposal == (
        "TODO in the proposed spec: name the class, and write what it is made of into `args` of each case; "
        "define layer.",
    )
    scope = {"layer": layer}
    exec(found.proposal, scope)
    report = verify([scope["LAYER"]], [law for law in LAWS if law.name in ("gradient_flow", "evaluation_mode")])
    assert {v.status for v in report.verdicts} == {Status.HOLDS}


class Scaled(Function):
    """Gradient reversal with a strength."""

    @staticmethod
    def forward(ctx, x, lam):
        ctx.lam = lam
        return x.view_as(x)

    @staticmethod
    def backward(ctx, y_bar):
        return -ctx.lam * y_bar, None


class Strict(Scaled):
    @staticmethod
    def forward(ctx, x, lam):
        if lam != 1:
            raise ValueError("only 1")
        return Scaled.forward(ctx, x, lam)


class Named(Function):
    @staticmethod
    def forward(ctx, x, mode, places):
        return x.clone()

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar, None, None


@pytest.mark.parametrize(
    ("function", "case", "surrogate"),
    [
        (Scaled, "(randn(3), 1.0)", "-lam * x,  # agrees with every case\n"),
        (Scaled, "(randn(3), 1)", "-lam * x,  # agrees with every case\n"),
        (Strict, "(randn(3), 1.0)", "-x,  # agrees with every case, and none varies `lam`\n"),
        (Named, "(randn(3), 'up', 2)", "x,  # agrees with every case, and none varies `mode`\n"),
    ],
)
def test_a_factor_that_no_case_varies_is_not_frozen_in(function, case, surrogate):
    assert f": {surrogate}" in audit(function, [case], laws=CHEAP).proposal


def plain(x, lam):
    return x * 1


def reversal(x, strength):
    return -strength * x


def test_the_references_are_in_the_proposal():
    found = audit(Scaled, ["(randn(3), 0.5)"], laws=CHEAP, reference=plain, surrogate=reversal)
    report = verify([made(found)], CHEAP)

    assert f"from {__name__} import Scaled, plain, reversal\n" in found.proposal
    assert "    primal=plain,\n    surrogate=lambda x, lam: reversal(x, lam),\n" in found.proposal
    assert (failures(report), failures(found.report)) == (set(), set())
    assert {v.status for v in report.of(law="vjp")} == {Status.HOLDS}


@pytest.mark.parametrize("role", ["reference", "surrogate"])
def test_a_local_reference_is_a_todo(role):
    found = audit(Scaled, ["(randn(3), 0.5)"], laws=CHEAP, **{role: lambda x, lam: -lam * x})

    name = {"reference": "primal", "surrogate": "surrogate"}[role]
    assert found.remarks_of_proposal == (f"TODO in the proposed spec: define {name}.",)
    assert f"\n# TODO: define {name}\n" in found.proposal
    assert f"    {name}={name},\n" in found.proposal
    assert ("    surrogate=" in found.proposal) is (role == "surrogate")


def test_what_was_not_measured_is_left_as_a_spec_says_it_itself():
    laws = [law for law in LAWS if law.name in ("surrogate", "layout")]
    found = audit(cases, [(torch.rand(3, dtype=torch.float64),)], laws=laws)

    assert "supports" not in found.proposal


class Leaky(Function):
    """`torch.where` of two numbers of Python is a float32."""

    @staticmethod
    def forward(ctx, x, slope):
        factor = torch.where(x < 0, slope, 1.0)
        ctx.save_for_backward(factor)
        return x * factor

    @staticmethod
    def backward(ctx, y_bar):
        (factor,) = ctx.saved_tensors
        return y_bar * factor, None


def leaky(x, slope):
    return torch.where(x < 0, x * slope, x)


@pytest.mark.parametrize("slope", [0.1, 0.5])
def test_a_proposal_says_how_exact_a_function_is_that_rounds_to_float32(slope):
    laws = [law for law in LAWS if law.name in ("primal", "vjp", "layout")]
    found = audit(Leaky, [f"(randn(5), {slope})"], laws=laws, reference=leaky)

    # A half is a float32.
    assert ("    accuracy=Accuracy(rtol=4e-6),  # given float64, it rounds to float32\n" in found.proposal) is (
        slope == 0.1
    )
    assert failures(verify([made(found)], laws)) == set()
