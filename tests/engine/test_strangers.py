"""Functions that somebody else wrote: sound ones are green, and the first finding names the defect of the others."""

from __future__ import annotations

import pytest

from gradspec import Status, Supports, verify
from gradspec.findings import findings
from gradspec.law import Rank
from gradspec.laws import LAWS
from gradspec_lab.strangers.stranger_specs import STRANGERS, load, spec_of

pytestmark = pytest.mark.slow

QUICK = [law for law in LAWS if law.judges("function") and law.cost == "ms"]


def found(file):
    return findings(verify([spec_of(STRANGERS / f"{file}.py", supports=Supports.eager())], QUICK))


@pytest.mark.parametrize(
    "name",
    ["crf_log_partition", "edge_softmax", "fft_conv", "ppo_clip", "quat_rotate", "reversible_block", "sinkhorn_plan"],
)
def test_a_sound_function_of_the_second_stranger_has_none_either(name):
    laws = [law for law in LAWS if law.judges("function") and law.cost != "compile"]
    report = verify([spec_of(STRANGERS / "second" / f"{name}.py", supports=Supports.eager())], laws)
    assert [f.verdict for f in findings(report) if f.rank in (Rank.WRONG, Rank.REFUSED)] == []


@pytest.mark.parametrize("name", ["gradient_reversal", "layer_norm", "lsq_quantize", "log_mix", "vector_quantize"])
def test_a_sound_function_has_no_finding_of_the_first_two_ranks(name):
    assert [f.verdict for f in found(f"functions/{name}") if f.rank in (Rank.WRONG, Rank.REFUSED)] == []


def test_a_call_with_one_setting_is_not_right_because_no_other_was_called_before():
    spec = spec_of(STRANGERS / "second" / "gaussian_blur.py", supports=Supports.eager())
    report = verify([spec], [law for law in LAWS if law.name == "earlier_calls"])

    # Alone, each case is right; behind the other ones it has the kernel of another width.
    assert [v.finding.details["called before"] for v in report.failures] == ["call 1, call 2", "call 2, call 0"]
    assert {v.finding.message.split(" differs")[0] for v in report.failures} == {"value after other calls"}


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("upsample_nearest", "vjp"),
        ("my_relu", "cotangents_untouched"),
        ("thresholded_relu", "interleaved"),
        ("mish", "second_order"),
        ("gated_unit", "retained_graph"),
        ("weighted_sum", "vjp"),
        ("sliding_mean", "layout"),
        ("standardize_numpy", "inputs_untouched"),
        ("cosine_similarity", "vjp"),
        ("cumulative_sum", "vjp"),
        ("euclidean_distance", "vjp"),
        ("fake_quant", "vjp"),
        ("focal_loss", "vjp"),
        ("row_max", "vjp"),
        ("log_cosh", "primal"),
        ("channel_scale", "needs_input_grad"),
        ("rbf_kernel", "needs_input_grad"),
        ("safe_exp", "ctx_clean"),
    ],
)
def test_the_first_finding_names_the_defect(name, law):
    first = found(f"functions/{name}")[0].verdict
    said = f"{first.finding.message} {first.finding.argument} {first.finding.likely}".lower()

    assert first.law == law
    words = load(STRANGERS / "functions" / f"{name}.py").TRUTH["names"]
    assert any(word.lower() in said for word in words), (said, words)


@pytest.mark.parametrize(
    ("file", "law", "hint"),
    [
        ("second/rms_energy", "primal", "infinite in float16"),
        ("third/probit_margin", "vjp", "right with `x` in place of `x.float()`"),
        ("third/value_chroma", "undefined_cotangent", "where the cotangent of another output is None"),
    ],
)
def test_the_hint_of_the_first_finding_is_true(file, law, hint):
    eager = Supports.eager(double_backward=True)
    first = findings(verify([spec_of(STRANGERS / f"{file}.py", supports=eager)], QUICK))[0].verdict

    assert first.law == law
    assert hint in first.finding.likely


@pytest.mark.parametrize("name", ["uint8_image", "relu6", "lsq_one_bit", "sign_hardtanh", "hinge_loss"])
def test_a_flat_case_lets_no_zero_gradient_pass(name):
    (first, *_) = found(f"flat/{name}")

    assert first.verdict.status in (Status.VACUOUS, Status.BROKEN)
    assert first.verdict.law == "vjp"
