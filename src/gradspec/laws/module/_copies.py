r"""A deep copy and a pickled module evaluate as the original does, and share no memory with it.

Why it matters: an average of weights, a worker process or a search over copies would otherwise change the original.

What breaks it: a tensor kept outside parameters and buffers, a custom `__deepcopy__`, a lambda as an attribute.

Remedy: register tensors, and keep functions at the top level of a file.
"""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from gradspec.law import HOLDS, Finding, Law, ModuleTrial, broken, raised
from gradspec.laws.module.support._build import beside_evaluation, evaluate, tensors, used
from gradspec.laws.tensor.support._compare import compare_all
from gradspec.laws.tensor.support._memory import overlap


def _check(trial: ModuleTrial) -> Finding:
    module = used(trial)
    ways: dict[str, Callable[[Any], Any]] = {"copy.deepcopy": copy.deepcopy}
    if _has_an_import_path(type(module)):
        ways["pickle"] = lambda m: pickle.loads(pickle.dumps(m))
    for way, duplicate in ways.items():
        try:
            twin = duplicate(module)
        except Exception as error:
            return raised(error, way)
        if (finding := _judge(trial, way, module, twin)) is not HOLDS:
            return finding
    return HOLDS


def _judge(trial: ModuleTrial, way: str, module: nn.Module, twin: nn.Module) -> Finding:
    mine, theirs = tensors(module), tensors(twin)
    for name, tensor in mine.items():
        if name in theirs and overlap(tensor, theirs[name]):
            return broken(f"{way}: `{name}` of the copy is the memory of the original", argument=f"`{name}`")
    if trial.case.inputs is None:
        return HOLDS
    before = evaluate(trial, module)
    finding = compare_all(trial, f"{way}: evaluation of the copy", evaluate(trial, twin), before, is_derivative=False)
    if finding is not HOLDS:
        return beside_evaluation(trial, module, finding)
    with torch.no_grad():
        for tensor in theirs.values():
            if tensor.is_floating_point():
                tensor.add_(1)
    said = f"{way}: what is done to the copy is done to the original"
    finding = compare_all(
        trial, f"{way}: evaluation of the original", evaluate(trial, module), before, is_derivative=False, said=said
    )
    return beside_evaluation(trial, module, finding)


def _has_an_import_path(cls: type) -> bool:
    # pickle names a class by where it is imported from: one that was cut out of a file is not a fault of its own.
    return getattr(sys.modules.get(cls.__module__), cls.__qualname__, None) is cls


COPIES = Law(
    name="copies",
    family="modules",
    statement=r"\text{copy}(F) = F",
    check=_check,
    doc=__doc__ or "",
    kinds=("module",),
    capability="copies",
)
