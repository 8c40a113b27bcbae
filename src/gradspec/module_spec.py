"""What a module promises, a network or a layer, and how to build what a case names.

`gradspec.spec` has the same objects; both paths stay.
"""

from gradspec.spec import ModuleCase, ModuleSpec, ModuleSupports, StateContract

__all__ = ["ModuleCase", "StateContract", "ModuleSupports", "ModuleSpec"]
