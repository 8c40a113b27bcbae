"""Specs of modules, under the path that they had before `gradspec.spec` held every spec."""

from gradspec.spec import ModuleCase, ModuleSpec, ModuleSupports, StateContract

# In the order of the page that documents them.
__all__ = ["ModuleCase", "StateContract", "ModuleSupports", "ModuleSpec"]  # noqa: RUF022
