"""The functions of tests/strangers as specs: their files say what a spec needs to know, in no form of ours."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.nn.utils.stateless import _reparametrize_module

from gradspec import Case, FunctionSpec, Supports
from gradspec.spec import Make

#: What the words of the fourth author for a limit say of a spec.
LIMITED = {
    "double_backward": "double_backward",
    "vmap": "vmap",
    "jvp": "forward_mode",
    "compile": "compile",
    "half": "autocast",
}
STRANGERS = Path(__file__).parents[3] / "tests" / "strangers"


def load(path: Path) -> ModuleType:
    """Return a file as a module, under the names of the first authors."""
    found = importlib.util.spec_from_file_location(f"stranger_{path.stem}", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # torch.compile looks a traced function up there
    found.loader.exec_module(module)
    if hasattr(module, "FUNCTION"):
        module.function, module.wrt = module.FUNCTION, module.WRT
        module.calls = lambda: [(call(), {}) for call in module.CALLS]
        module.TRUTH = {"sound": not module.DEFECT, "defect": module.DEFECT}
    return module


def promised(path: Path) -> Supports:
    """Return what the author of a file promises: of the fourth set all but its limits, of the others eager training."""
    limits = getattr(load(path), "LIMITS", None)
    if limits is None:
        return Supports.eager()
    kept = {name: True for word, name in LIMITED.items() if word not in limits}
    return Supports.eager(**({"double_backward": None} | kept))


def spec_of(path: Path, **more: Any) -> FunctionSpec | None:
    """Return the spec of a file; None where it has no primal, since its noise is drawn within.

    Args:
        path: the file.
        more: further fields of the spec.
    """
    file = load(path)
    primal = file.primal
    if primal is None:
        return None
    if hasattr(file, "module"):
        return _of_module(path, file, more)

    def cases(make: Make) -> Iterator[Case]:
        for number, (args, kwargs) in enumerate(file.calls()):
            yield Case(name=f"call {number}", args=tuple(args), kwargs=kwargs)

    surrogate = getattr(file, "surrogate", primal)
    return FunctionSpec(
        name=path.stem, function=file.function, primal=primal, surrogate=surrogate, wrt=file.wrt, cases=cases, **more
    )


def _of_module(path: Path, file: ModuleType, more: dict[str, Any]) -> FunctionSpec:
    """Return a spec of the parameters and inputs of a module, which is called with them in place of its own."""
    made = file.module()
    names = [name for name, _ in made.named_parameters()]
    inputs = list(inspect.signature(file.primal).parameters)[1:]

    def called(plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            given = call.__signature__.bind(*args, **named).args  # type: ignore[attr-defined]
            with torch.random.fork_rng(devices=[]):  # its first weights are drawn, and replaced
                module = file.module()
            # For as long as the module is there, and not for the time of the call: backward may look into it again.
            replaced = _reparametrize_module(module, dict(zip(names, given, strict=False)))
            replaced.__enter__()
            object.__setattr__(module, "replaced", replaced)
            return plain(module, *given[len(names) :])

        call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(n.replace(".", "_"), inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in (*names, *inputs)]
        )
        call.__qualname__ = path.stem
        return call

    def cases(make: Make) -> Iterator[Case]:
        for number, (args, _) in enumerate(file.calls()):
            weights = [value.detach().clone() for _, value in file.module().named_parameters()]
            yield Case(name=f"call {number}", args=(*weights, *args))

    surrogate = getattr(file, "surrogate", file.primal)
    return FunctionSpec(
        name=path.stem,
        function=called(lambda module, *x: module(*x)),
        primal=called(file.primal),
        surrogate=called(surrogate),
        wrt=tuple(name.replace(".", "_") for name in file.wrt),
        cases=cases,
        **more,
    )
