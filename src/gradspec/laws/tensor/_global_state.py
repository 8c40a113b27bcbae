r"""A call leaves the process as it found it: the settings of torch and of Python, torch itself, the screen.

Looked at are the default dtype and device, grad mode, autocast, determinism, anomaly detection, threads, the precision
of float32 products, the switches of torch.backends, hooks on saved tensors and other modes, flushing of denormal
numbers, rounding, print options, the umask, the current folder, the locale, the limit of recursion, the environment,
handlers of signals, filters of warnings, the errors of numpy, the garbage collector, the logger at the root, the hooks
of Python, and the functions of torch and of Python.

The law checks a plain pass, a pass with a tangent, and a differentiated backward pass, if these are promised.

Why it matters: a setting that one function changes for the whole process causes errors elsewhere, and what it prints
appears in the output of a program that did not ask for it.

What breaks it: `torch.set_default_dtype` in forward, grad mode switched without a context manager, a patch of
`torch.nn.functional`, a forgotten `print`.

Remedy: give dtype and device to each call, use the context managers, and raise or warn instead of printing.
"""

from __future__ import annotations

from gradspec._process_state import Surroundings, listening, marked_filters
from gradspec._settings import LAZY
from gradspec.law import HOLDS, Finding, Law, Trial, broken
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._passes import Pass, called, in_each_pass

NOT_PUT_BACK = "it is set and not put back: give dtype and device to each call, or use a context manager"


def _check(trial: Trial) -> Finding:
    return in_each_pass(trial, lambda way: _watch(trial, way))


def _watch(trial: Trial, way: Pass) -> Finding:
    moved, text = _moved(trial, way)
    if any(map(_is_lazy, moved)):
        again, _ = _moved(trial, way)
        moved = [what for what in moved if what in again or not _is_lazy(what)]
    if text:
        moved.append(f"it prints {text[:80]!r}{'…' if len(text) > 80 else ''}")
    return broken("; ".join(moved), likely="" if text else NOT_PUT_BACK) if moved else HOLDS


def _is_lazy(what: str) -> bool:
    """Whether an import within a first call may have done that, for good."""
    return what.partition(": ")[2].startswith(LAZY)


def _moved(trial: Trial, way: Pass) -> tuple[list[str], str]:
    """Call the function; return what has moved, in words, and what it printed."""
    inputs = Inputs.of(trial)
    leaves = way.leaves(inputs)
    with marked_filters(), listening() as heard:
        before = Surroundings.now()
        try:
            y = called(trial, way, inputs, leaves)
            moved = [f"forward: {what}" for what in before.restore()]
            way.backward(y, leaves, trial.seed)
        finally:
            late = before.restore()
        text = heard()
    return [*moved, *(f"backward: {what}" for what in late)], text


GLOBAL_STATE = Law(
    name="global_state",
    family="effects",
    statement=r"\text{process}_{\text{after}} = \text{process}_{\text{before}}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
)
