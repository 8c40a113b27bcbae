"""Sheets: the mathematics of a page is derived from the spec, and the signature read off the code."""

from dataclasses import replace

import pytest

from gradspec.functions import FUNCTIONS, GRAD_FACTOR, GradFactor, grad_factor
from gradspec.spec import Formula, FunctionSpec
from gradspec.spec._formula_tex import formula_tex, stated_tex, sympy_formula
from gradspec.spec._kinds import spec_sheet
from gradspec.spec._sheet import call_signature
from gradspec_lab.specimens.diseased import CombinedForward
from gradspec_lab.specimens.honest import CUBE, SCALE


def test_backward_and_forward_mode_are_the_derivatives_of_the_surrogate():
    assert formula_tex(GRAD_FACTOR) == {
        "primal": "y = x",
        "surrogate": r"\tilde{y} = f x",
        "backward": r"\bar{x} = f\,\bar{y}",
        "forward_mode": r"\dot{y} = f\,\dot{x}",
    }
    assert formula_tex(CUBE)["backward"] == r"\bar{x} = 3 x^{2}\,\bar{y}"


@pytest.mark.parametrize(
    ("function", "called"),
    [
        (GradFactor.apply, ("gradspec.functions.GradFactor", True)),
        (grad_factor, ("gradspec.functions.grad_factor", False)),
        (lambda x, f: x, ("", False)),
    ],
)
def test_what_a_call_names_is_told_by_its_public_name(function, called):
    sheet = spec_sheet(replace(GRAD_FACTOR, function=function, implementation=None, documented=()), "here")

    assert (sheet["called"], sheet["is_class"]) == called


def test_a_sum_before_a_vector_stands_in_parentheses():
    spec = replace(SCALE, formula=Formula(primal="x", surrogate="factor * x + x**2"))

    assert formula_tex(spec)["backward"] == r"\bar{x} = \left(factor + 2 x\right)\,\bar{y}"


def test_an_honest_identity_has_no_coefficient():
    spec = replace(SCALE, formula=Formula(primal="x", surrogate="x"))

    assert formula_tex(spec)["backward"] == r"\bar{x} = \bar{y}"


def test_a_formula_of_a_name_that_is_no_argument_is_refused():
    with pytest.raises(ValueError, match=r"uses \['z'\]"):
        sympy_formula(replace(SCALE, formula=Formula(primal="x", surrogate="z * x")))


def test_the_signature_is_that_of_forward_without_ctx():
    ours = call_signature(GRAD_FACTOR)
    combined = call_signature(SCALE.for_(CombinedForward.apply, name="combined"))

    assert [p["name"] for p in ours["parameters"]] == ["x", "f"]
    assert (ours["parameters"][0]["annotation"], ours["returns"]) == ("Tensor", "Tensor")
    assert [p["name"] for p in combined["parameters"]] == ["x", "factor"]


def test_a_function_with_a_function_inside_it_is_called_by_its_own_arguments():
    def moments(xs, mask=None, unbiased=True):
        return CombinedForward.apply(xs, 2.0)

    spec = FunctionSpec(
        moments, lambda xs, mask=None, unbiased=True: 2 * xs, implementation=CombinedForward, wrt=("xs",), cases=[]
    )

    assert [p["name"] for p in call_signature(spec)["parameters"]] == ["xs", "mask", "unbiased"]


def test_the_signature_is_short_of_what_apply_draws_or_computes_itself():
    shown = {spec.name: [p["name"] for p in call_signature(spec)["parameters"]] for spec in FUNCTIONS}

    assert shown["shake_shake"] == ["x1", "x2", "training"]
    assert shown["instance_discrimination_loss"] == ["x", "y", "memory", "temperature"]


def test_an_apply_that_names_its_arguments_otherwise_says_nothing_of_the_call():
    class Renamed(CombinedForward):
        @classmethod
        def apply(cls, theirs, *rest):
            return super().apply(theirs, *rest)

    assert [p["name"] for p in call_signature(SCALE.for_(Renamed.apply, name="renamed"))["parameters"]] == [
        "x",
        "factor",
    ]


def test_documents_are_named_by_their_public_path():
    assert spec_sheet(GRAD_FACTOR)["documented"] == ["gradspec.functions.GradFactor", "gradspec.functions.grad_factor"]


def test_the_formulas_of_a_docstring_are_an_equation_each():
    def documented():
        r"""Say something.

        .. math::

            y = x M, \qquad
            \bar{x} = \bar{y} M^{\top}

        And :math:`z` in a line, then another one:

        .. math:: not_displayed

        .. math::

            z = 1
        """

    assert stated_tex(documented) == ["y = x M", r"\bar{x} = \bar{y} M^{\top}", "z = 1"]
    assert stated_tex(int) == []
