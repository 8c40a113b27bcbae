"""Specs of modules: the contract of a network or a layer, and how to build the module of a case.

`gradspec.spec` has the same objects; both paths stay.
"""

from gradspec.spec import ModuleCase, ModuleSpec, ModuleSupports, StateContract

__all__ = ["ModuleCase", "StateContract", "ModuleSupports", "ModuleSpec"]
