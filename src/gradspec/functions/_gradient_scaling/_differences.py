"""How the published classes of this form behave otherwise; the record of the peers shows each row."""

from __future__ import annotations

from gradspec.spec import Difference


def differences(peer: str, name: str) -> tuple[Difference, ...]:
    """Return how a published class of the form `forward(ctx, x, NAME)` differs; the record of the peers shows it."""

    def row(published: str, ours: str, law: str, case: str = "factor 0.1") -> Difference:
        return Difference(peer=peer, published=published, ours=ours, law=law, case=case)

    return (
        row(
            f"`forward(ctx, x, {name})` takes ctx, so `torch.func.grad` raises.",
            f"`forward(x, {name})` and `setup_context` are separate, as `torch.func` requires.",
            "func_grad",
        ),
        row("`torch.vmap` raises.", "The vmap rule is generated, over `x`, the factor, or both.", "vmap"),
        row(
            "There is no forward mode.",
            "Forward mode applies the derivative of the surrogate, so that it is adjoint to backward.",
            "jvp",
        ),
        row(
            "`torch.compile` of `torch.func.grad` drops the factor, silently.",
            "The class is allowed in the graph, and the factor is applied.",
            "compile_grad",
        ),
        row(
            "`torch.export` drops the factor or the gradient.",
            "While exporting, plain operations with the declared gradient are traced; infinities become NaN there.",
            "export",
        ),
        row(
            "A factor that requires grad is accepted, and gets no gradient, silently.",
            "It is refused with an error that says to detach it.",
            "wrong_call",
            "factor requires grad",
        ),
        row(
            "A factor of another shape is accepted in forward, and fails, if at all, in backward.",
            "It is refused at the call.",
            "wrong_call",
            "factor does not broadcast",
        ),
        row(
            "A tensor factor is kept on ctx, where torch does not see it change.",
            "It is saved with `save_for_backward`, which does.",
            "ctx_clean",
            "0-d tensor factor",
        ),
    )
