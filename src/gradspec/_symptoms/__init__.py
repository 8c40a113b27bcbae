"""The symptom index: what a finding looks like, what causes it, and what to do; a row for each kind of `Reason`."""

from gradspec._symptoms._of_calls import OF_CALLS
from gradspec._symptoms._of_gradients import OF_GRADIENTS
from gradspec._symptoms._symptom import Symptom

__all__ = ["SYMPTOMS", "Symptom"]

SYMPTOMS = (*OF_GRADIENTS, *OF_CALLS)
