"""How the published LinearAverageOp behaves otherwise; the record of the peers shows each row."""

from __future__ import annotations

from gradspec.spec import Difference

PEER = "brails.processors.foundation_classifier.npid.npid_lib.LinearAverage.LinearAverageOp"


def _row(published: str, ours: str, law: str, case: str = "three of five rows") -> Difference:
    return Difference(peer=PEER, published=published, ours=ours, law=law, case=case)


DIFFERENCES = (
    _row(
        "`out.sum().backward()` raises: the expanded cotangent is divided in place.",
        "Any cotangent works.",
        "cotangent_layout",
    ),
    _row(
        "Where the cotangent is not expanded, it is divided by T under the caller's eyes.",
        "The cotangent is left alone.",
        "cotangents_untouched",
    ),
    _row(
        "The bank moves inside backward, so that a second backward pass over a retained graph raises.",
        "The bank moves once, after the pass, and a second pass has the same gradient.",
        "retained_graph",
    ),
    _row(
        "A backward pass that raises behind the function has moved the bank by then.",
        "The bank moves when the pass has succeeded, and not before.",
        "state_transition",
    ),
    _row(
        "Backward works on `.data`: a second derivative is missing, silently.",
        "Backward can be differentiated, any number of times.",
        "second_order",
    ),
    _row(
        "`torch.compile(fullgraph=True)` raises.",
        "Forward, backward and the move work in a compiled graph.",
        "compile",
    ),
    _row(
        "`torch.compile` of `torch.func.grad` applies another gradient, silently.",
        "It is refused with an error: no backward pass would move the bank.",
        "compile_grad",
    ),
    _row(
        "A number past the bank is accepted, and found in backward.",
        "It is refused at the call.",
        "wrong_call",
        "row past the bank",
    ),
    _row(
        "A bank that requires grad is accepted, and gets no gradient, silently.",
        "It is refused with an error that says to detach it.",
        "wrong_call",
        "bank that requires grad",
    ),
)
