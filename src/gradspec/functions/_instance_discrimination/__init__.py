"""The loss of instance discrimination against a memory bank."""

from gradspec.functions._instance_discrimination._function import (
    InstanceDiscriminationLoss,
    instance_discrimination_loss,
)
from gradspec.functions._instance_discrimination._spec import INSTANCE_DISCRIMINATION_LOSS

__all__ = [
    "INSTANCE_DISCRIMINATION_LOSS",
    "InstanceDiscriminationLoss",
    "instance_discrimination_loss",
]
