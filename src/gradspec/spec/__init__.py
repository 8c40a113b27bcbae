"""Specs as frozen data: of functions on tensors, of modules, of operations on text."""

from gradspec._renamed import old_names
from gradspec.spec._base import Argument, Case, Difference, Make, Misuse, Reference, Spec, Waiver, check_callable
from gradspec.spec._function import Accuracy, Effects, Formula, FunctionSpec, Noise, Placements, Saved, Supports
from gradspec.spec._invocation import Invocation
from gradspec.spec._kind import Kind
from gradspec.spec._module import ModuleCase, ModuleSpec, ModuleSupports, StateContract
from gradspec.spec._operator import OperatorSpec
from gradspec.spec._signature import signature_sheet
from gradspec.spec._text import TextCase, TextMaker, TextSpec

__all__ = [
    "Accuracy",
    "Argument",
    "Case",
    "Difference",
    "Effects",
    "Formula",
    "FunctionSpec",
    "Invocation",
    "Kind",
    "Make",
    "Misuse",
    "ModuleCase",
    "ModuleSpec",
    "ModuleSupports",
    "Noise",
    "OperatorSpec",
    "Placements",
    "Reference",
    "Saved",
    "Spec",
    "StateContract",
    "Supports",
    "TextCase",
    "TextMaker",
    "TextSpec",
    "Waiver",
    "check_callable",
    "signature_sheet",
]

__getattr__ = old_names(__name__, Attempt="Invocation")
