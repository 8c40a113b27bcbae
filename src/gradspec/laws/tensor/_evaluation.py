r"""In evaluation nothing is random: value and gradient are those of the noise at rest, and no generator moves.

Why it matters: saliency maps, adversarial examples and validation losses are computed in evaluation, and must be the
same each time.

What breaks it: a backward that draws whatever the mode, a draw that is thrown away.

Remedy: decide in forward, by the mode, and give backward the noise at rest.
"""

from __future__ import annotations

from gradspec.law import HOLDS, Finding, Law, Trial, broken, not_applicable
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs
from gradspec.laws.tensor.support._compare import compare, compare_all
from gradspec.laws.tensor.support._generators import given_noise, has_batch, moved, seeded, states, without_noise
from gradspec.laws.tensor.support._reference import on_spec_side, reference


def _check(trial: Trial) -> Finding:
    noise, inputs = given_noise(trial), without_noise(trial)
    if noise is None or noise.evaluation is None:
        return not_applicable("no noise is among the arguments, or the spec has no form of evaluation")
    if not has_batch(inputs):
        return not_applicable("no floating-point input with a batch in this case")
    still = Inputs({**Inputs.of(trial).values, **noise.at_rest}, inputs.wrt)
    leaves, twins = inputs.leaves(), still.leaves()
    with seeded(trial.seed):
        start = states()
        y = outputs(noise.evaluation(*inputs.args(leaves)))
        if drawn := moved(start, states()):
            return broken(f"in evaluation, forward draws from {drawn[0]}", likely="a draw whatever the mode")
        v = like(y, trial.seed)
        got = gradients(y, leaves, v)
        if drawn := moved(start, states()):
            return broken(f"in evaluation, backward draws from {drawn[0]}", likely="a draw whatever the mode")
    expected = outputs(on_spec_side("primal", trial.spec.primal, *still.args()))
    for mine, theirs in zip(y, expected, strict=True):
        if (finding := compare(trial, "value in evaluation", mine, theirs)) is not HOLDS:
            return finding
    right = gradients(outputs(reference(trial.spec)(*still.args(twins))), twins, v)
    return compare_all(trial, "gradient in evaluation", got, right)


EVALUATION = Law(
    name="evaluation",
    family="randomness",
    statement=r"F_{\text{eval}}(x) = F(x;\,\text{noise at rest})",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
    needs_spec=True,
)
