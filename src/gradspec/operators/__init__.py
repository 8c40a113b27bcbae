"""Reference functions as operators of `torch.library`: torch.export keeps them as calls, and so their gradients.

An exported program that calls one runs wherever this module is imported first. It registers `gradspec::grad_factor`,
`gradspec::shake_shake` and `gradspec::instance_discrimination_loss`; each has a function of its name here, which checks
its arguments.
"""

from gradspec.operators._grad_factor import GRAD_FACTOR_OPERATOR, grad_factor
from gradspec.operators._instance_discrimination import (
    INSTANCE_DISCRIMINATION_LOSS_OPERATOR,
    instance_discrimination_loss,
)
from gradspec.operators._shake_shake import SHAKE_SHAKE_OPERATOR, shake_shake

#: What `gradspec check gradspec.operators` verifies.
OPERATORS = (GRAD_FACTOR_OPERATOR, SHAKE_SHAKE_OPERATOR, INSTANCE_DISCRIMINATION_LOSS_OPERATOR)

__all__ = ["OPERATORS", "grad_factor", "instance_discrimination_loss", "shake_shake"]
