"""The laws, in the order in which they run."""

from gradspec._process_state import Surroundings, preserved_process_state
from gradspec._renamed import old_names
from gradspec.laws.module import LAWS as MODULE_LAWS
from gradspec.laws.operator import LAWS as OPERATOR_LAWS
from gradspec.laws.tensor import LAWS as TENSOR_LAWS
from gradspec.laws.tensor.support._calibration import cause_of, is_silent_for_form, learn, torch_version, untold
from gradspec.laws.tensor.support._call import SpecFaultError, StandInError
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._reference import is_audited, is_stand_in, stand_in
from gradspec.laws.tensor.support._unit import comparing
from gradspec.laws.tensor.support._witness import witnessing
from gradspec.laws.text import LAWS as TEXT_LAWS

#: Each judges the specs of its kinds.
LAWS = (*TENSOR_LAWS, *OPERATOR_LAWS, *MODULE_LAWS, *TEXT_LAWS)

__all__ = [
    "LAWS",
    "SpecFaultError",
    "StandInError",
    "Surroundings",
    "cause_of",
    "comparing",
    "is_audited",
    "is_silent_for_form",
    "is_stand_in",
    "learn",
    "preserved_process_state",
    "quietly",
    "stand_in",
    "torch_version",
    "untold",
    "witnessing",
]

__getattr__ = old_names(__name__, undisturbed="preserved_process_state")
