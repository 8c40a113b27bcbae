"""How the published ShakeShake behaves otherwise; the record of the peers shows each row."""

from __future__ import annotations

from gradspec.spec import Difference

PUBLISHED = "archai.supergraph.models.shakeshake.shakeshake.ShakeShake"
#: The same class with `torch.FloatTensor` for the `torch.cuda.FloatTensor` that it draws with.
ON_THE_CPU = f"{PUBLISHED}, its noise made on the CPU"


def _row(published: str, ours: str, law: str, case: str = "images", peer: str = ON_THE_CPU) -> Difference:
    return Difference(peer=peer, published=published, ours=ours, law=law, case=case)


DIFFERENCES = (
    _row(
        "The noise is made by `torch.cuda.FloatTensor`: on any other device, training raises.",
        "The noise is made on the device of the branches.",
        "primal",
        peer=PUBLISHED,
    ),
    _row("Branches that are not of four dimensions raise.", "Any rank is taken, batch first.", "primal", "rows"),
    _row(
        "The noise is float32 whatever the branches are: bfloat16 in, float32 out.",
        "The noise, and the output, have the dtype of the branches.",
        "precision",
    ),
    _row(
        "In evaluation the backward pass draws all the same, so saliency maps are random.",
        "In evaluation each branch gets one half of the cotangent, and nothing is drawn.",
        "evaluation",
    ),
    _row(
        "Beta is drawn in backward: a second pass over a retained graph gives another gradient.",
        "Forward draws both weights, and every backward pass uses the same beta.",
        "replayed",
    ),
    _row(
        "Both gradients are computed, whatever is asked for.",
        "A gradient that nobody needs is not computed.",
        "needs_input_grad",
    ),
    _row(
        "`forward(ctx, x1, x2, training)` takes ctx, so `torch.func.grad` raises.",
        "`forward` and `setup_context` are separate, as `torch.func` requires.",
        "func_grad",
    ),
    _row("`torch.vmap` raises.", "The vmap rule is generated.", "vmap"),
    _row("There is no forward mode.", "Forward mode mixes the tangents with beta.", "jvp"),
    _row("`torch.compile` of it raises.", "The class is allowed in the graph.", "compile"),
    _row("`torch.export` of it raises.", "While exporting, plain operations with both weights are traced.", "export"),
)
