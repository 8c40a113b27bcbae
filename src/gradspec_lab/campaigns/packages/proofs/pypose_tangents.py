"""PyPose's gradients of group elements are those of a left perturbation in the Lie algebra, padded with a zero.

`LieTensor`'s documentation says so. Each is compared with central differences along such perturbations.
"""

from pathlib import Path

import torch
from pypose.lietensor import basics
from pypose.lietensor import operation as op

torch.manual_seed(0)
ALGEBRA = {"SO3": "so3", "SE3": "se3", "RxSO3": "rxso3", "Sim3": "sim3"}
SIZE = {"SO3": 3, "SE3": 6, "RxSO3": 4, "Sim3": 7}
STEP = 1e-5
#: What the results of an operation are: elements of the group or of the algebra, or plain numbers.
OPERATIONS = {"Log": "X", "Inv": "X", "Mul": "XX", "Act": "Xp", "AdjXa": "Xa", "AdjTXa": "Xa"}
IS_GROUP = ("Inv", "Mul", "Exp")


def _function(group, name):
    return getattr(op, f"{ALGEBRA[group]}_Exp" if name == "Exp" else f"{group}_{name}").apply


def _moved(group, kind, value, direction):
    if kind != "X":
        return value + direction
    return _function(group, "Mul")(_function(group, "Exp")(direction), value)


def _change(group, name, ends):
    """Return the derivative of a result in the numbers that a cotangent pairs with."""
    if name not in IS_GROUP:
        return (ends[0] - ends[1]) / (2 * STEP)
    between = _function(group, "Mul")(ends[0], _function(group, "Inv")(ends[1]))
    return _function(group, "Log")(between) / (2 * STEP)


def _off(group, name, kinds):
    size, count = SIZE[group], 3
    make = {
        "X": lambda: _function(group, "Exp")(0.7 * torch.randn(count, size, dtype=torch.float64)),
        "a": lambda: 0.7 * torch.randn(count, size, dtype=torch.float64),
        "p": lambda: torch.randn(count, 3, dtype=torch.float64),
    }
    values = [make[kind]().detach().requires_grad_() for kind in kinds]
    result = _function(group, name)(*values)
    weights = torch.randn_like(result)
    gradients = torch.autograd.grad(result, values, weights)
    found = []
    for place, (kind, gradient) in enumerate(zip(kinds, gradients, strict=True)):
        width = 3 if kind == "p" else size
        expected = torch.zeros(count, width, dtype=torch.float64)
        for k in range(width):
            direction = torch.zeros(count, width, dtype=torch.float64)
            direction[:, k] = STEP
            ends = []
            for sign in (1, -1):
                given = [v.detach() for v in values]
                given[place] = _moved(group, kind, given[place], sign * direction)
                ends.append(_function(group, name)(*given))
            change = _change(group, name, ends)
            expected[:, k] = (weights[:, : change.shape[1]] * change).sum(1)
        assert kind != "X" or not gradient[:, size:].any(), "it is padded with a zero"
        found.append(float((gradient[:, :width] - expected).norm() / expected.norm()))
    return found


found = {
    f"{group}_{name}": _off(group, name, kinds) for group in SIZE for name, kinds in {**OPERATIONS, "Exp": "a"}.items()
}
for name, off in found.items():
    print(f"{name}: off by {', '.join(f'{one:.0e}' for one in off)} of the derivative along a left perturbation")
documented = Path(basics.__file__).read_text(encoding="utf-8")
assert "the gradient of a Lie Group is computed as a left perturbation" in " ".join(documented.split())

# The Jacobians of Sim3 have no closed form: a series of the angle, cut off, as the docstring of `Jinvp` says.
SERIES = ("Sim3_Log", "Sim3_Exp")
# The transpose of an adjoint that is not orthogonal is not its inverse: the gradient of `a`, which is no group element
# and has a plain derivative, is wrong, and that of `X` with it.
WRONG = ("SE3_AdjTXa", "Sim3_AdjTXa")
assert all(max(off) < 1e-6 for name, off in found.items() if name not in (*SERIES, *WRONG))
assert all(1e-6 < max(found[name]) < 0.05 for name in SERIES)
assert all(min(found[name]) > 0.1 for name in WRONG)
