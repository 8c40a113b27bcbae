"""What an audit says of a function whose plain call gives nothing to judge: what happened, and what to do."""

from __future__ import annotations

from dataclasses import replace

from gradspec._audit._measured import Measured
from gradspec.law import Finding, Status

#: What a message of torch holds, and what to do then.
_REMEDIES = {
    "in-place operation": (
        "it writes to an argument of which a gradient is asked for, and torch allows that to no leaf: audit a "
        "function that hands it a copy, as `lambda x: Name.apply(x.clone())` does"
    ),
    "SystemExit": "it ends the interpreter with sys.exit()",
    "You must implement either the backward or vjp": "write its `backward`: an audit judges the gradient of that",
}


def refused_call(measured: Measured) -> Finding:
    """Return the finding that a plain call, or its backward pass, raises."""
    call = "the backward pass of a plain call" if measured.in_backward else "a plain call"
    usual = "" if measured.in_backward else "give arguments that the function takes"
    likely = next((remedy for said, remedy in _REMEDIES.items() if said in measured.raised), usual)
    return Finding(status=Status.ERROR, message=f"{call} raises {measured.raised}", likely=likely)


def ended_call(found: Finding) -> Finding:
    """Return the finding that the process of the plain calls died, or gave no answer, forward or backward."""
    own = found.message.startswith("gradspec itself")
    message = found.message if own else f"{found.message}, in a plain call or its backward pass"
    status = found.status if found.is_cut_off else Status.ERROR
    return replace(found, status=status, message=message)
