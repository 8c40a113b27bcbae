"""Whether a violation is the function's own: the least sound Function of its form is run under the same law."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import torch

from gradspec.law import Finding, Law, Status, Trial, raised
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._form import Form
from gradspec.laws.tensor.support._graph import classes_behind
from gradspec.laws.tensor.support._sound import sound
from gradspec.spec._function import with_function

#: What to write for each thing that a form can lack.
PATCHES = {
    "setup_context": (
        "@staticmethod\n"
        "def forward(x):                              # no ctx: torch.func runs it alone\n"
        "    ...\n"
        "@staticmethod\n"
        "def setup_context(ctx, inputs, output):\n"
        "    ctx.save_for_backward(*inputs)"
    ),
    "vmap": "generate_vmap_rule = True",
    "jvp": (
        "@staticmethod\n"
        "def jvp(ctx, x_dot):                         # the derivative of the surrogate along x_dot\n"
        "    ..."
    ),
    "allowed": "torch.compiler.allow_in_graph({name})        # below the class",
    "differentiable": "# backward in differentiable torch, from saved tensors, without @once_differentiable",
}
#: What to call each of them in a sentence.
_WORDS = {
    "setup_context": "`setup_context`",
    "vmap": "`generate_vmap_rule = True`",
    "jvp": "`jvp`",
    "allowed": "`torch.compiler.allow_in_graph`",
    "differentiable": "a backward that can be differentiated",
}


@dataclass(frozen=True)
class Cause:
    """Why a sound function of the same form violates a law too."""

    #: What the form lacks, as names of `Form`; empty where nothing that can be written helps.
    lacks: tuple[str, ...]
    #: The names of the Functions.
    names: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """The missing parts of the form, in words."""
        return (
            f"a sound Function of this form fails alike: it needs {' and '.join(_WORDS[name] for name in self.lacks)}"
        )

    @property
    def patch(self) -> list[str]:
        """The code to add, a part for each missing thing."""
        return [PATCHES[name].format(name=self.names[0] if self.names else "NAME") for name in self.lacks]


def cause_of(law: Law, trial: Trial, finding: Finding, *, in_full: bool = True) -> Cause | None:
    """Return why a violation is not the function's own; None where it is, or where there is no Function.

    Args:
        law: the law.
        trial: its view of the case.
        finding: the violation.
        in_full: name what is needed, and not all that the form lacks: a compilation or more for each part of it.
    """
    inputs = Inputs.of(trial)
    try:
        y = trial.spec.function(*inputs.args(inputs.leaves()))
    except Exception:
        return None
    if not (classes := classes_behind(y)):
        return None
    form = Form.of(classes, y)
    if _symptom(_found(law, trial, form)) != _symptom(finding):
        return None
    if form.overlapping and not _holds_of_copies(law, trial):
        return None
    names = tuple(cls.__name__ for cls in classes)
    if not form.lacking or _found(law, trial, _with(form, form.lacking)).status is not Status.HOLDS:
        return Cause((), names)
    if not in_full:
        return Cause(form.lacking, names)
    first = (form.lacking[:count] for count in range(1, len(form.lacking) + 1))
    added = next(some for some in first if _found(law, trial, _with(form, some)).status is Status.HOLDS)
    needed = tuple(one for one in added if not _holds_without(law, trial, form, added, one))
    return Cause(needed or added, names)


def is_silent_for_form(law: Law, trial: Trial) -> bool:
    """Return whether a sound function of the form of this one violates a law, and nothing is raised."""
    try:
        y = trial.spec.function(*(inputs := Inputs.of(trial)).args(inputs.leaves()))
    except Exception:
        return False
    found = _found(law, trial, Form.of(classes, y)) if (classes := classes_behind(y)) else None
    return found is not None and found.status is Status.BROKEN and "raised" not in found.details


def _holds_of_copies(law: Law, trial: Trial) -> bool:
    """Whether a function holds a law where its outputs are copied, so that no two numbers share a place."""

    @wraps(trial.spec.function)
    def copying(*args: Any, **kwargs: Any) -> Any:
        y = trial.spec.function(*args, **kwargs)
        copies = tuple(one.clone() if isinstance(one, torch.Tensor) else one for one in outputs(y))
        return copies if isinstance(y, tuple | list) else copies[0]

    try:
        found = law.check(replace(trial, spec=with_function(trial.spec, copying)))
    except Exception:
        return False
    return found.status is Status.HOLDS


def _holds_without(law: Law, trial: Trial, form: Form, added: tuple[str, ...], one: str) -> bool:
    rest = [name for name in added if name != one]
    return _found(law, trial, _with(form, rest)).status is Status.HOLDS


def _with(form: Form, names: Iterable[str]) -> Form:
    return replace(form, **dict.fromkeys(names, True))


#: What laws say of the sound functions of forms: by the law's check, so that no two laws of one name meet.
_FOUND: dict[tuple[Any, ...], Finding] = {}
#: How many of these another process has been told, or has told this one.
_told = 0


def _found(law: Law, trial: Trial, form: Form) -> Finding:
    """Return what a law says of the sound function of a form, once in a process and those that it forks."""
    profile = replace(trial.profile, laws=(), scopes=(), device="cpu", compiled_cases=0, time_limit=0)
    key = (law.check, form, profile)
    if key not in _FOUND:
        spec = sound(form)
        (case,) = spec.cases(None)  # type: ignore[arg-type]  # its tensor is its own
        try:
            _FOUND[key] = law.check(replace(trial, spec=spec, case=case, seed=0))
        except Exception as error:
            _FOUND[key] = raised(error)
    return _FOUND[key]


def untold() -> list[bytes]:
    """Return, as pickles, what this process has found of sound functions since it was asked last."""
    global _told
    news, _told = list(_FOUND.items())[_told:], len(_FOUND)
    pickles = []
    for one in news:
        with suppress(Exception):  # the check of a law may be local to a function
            pickles.append(pickle.dumps(one))
    return pickles


def learn(told: list[bytes]) -> None:
    """Take what a child process has found, so that no other one has to compile for it again."""
    global _told
    _FOUND.update(map(pickle.loads, told))
    _told = len(_FOUND)


def _symptom(finding: Finding) -> tuple[object, ...]:
    """Return what tells one violation from another, whatever the function is called and computes."""
    if finding.status is not Status.BROKEN:
        return (finding.status,)
    if "raised" in finding.details:
        kind, _, text = str(finding.details["raised"]).partition(":")
        words = re.sub(r"\W+", " ", re.sub(r"[`'\"<(].*|\d+", "", text)).split()
        return ("raised", kind, *words[:5])
    return ("silent",)  # a lost gradient is another number, a NaN or another shape, as forward has it


def torch_version() -> str:
    """Return the version of torch, without what a build adds."""
    return ".".join(torch.__version__.split("+")[0].split(".")[:2])
