"""How torch's own linear cross-entropy behaves otherwise; the record of the peers shows each row."""

from __future__ import annotations

from gradspec.spec import Difference

TORCH = "torch.nn.functional.linear_cross_entropy"
#: Its two forms without all the logits.
BY_ROW, SUMMED = f"{TORCH}, with options, a loss for each row", f"{TORCH}, with options, summed"


def _row(published: str, ours: str, law: str, peer: str = SUMMED) -> Difference:
    return Difference(peer=peer, published=published, ours=ours, law=law, case="few classes")


DIFFERENCES = (
    _row("Forward mode gives a tangent of 0, silently.", "Forward mode gives the derivative.", "jvp"),
    _row("For a loss for each row too.", "It does so for each row.", "jvp", BY_ROW),
    _row("Under `torch.compile` the tangent is 0, silently.", "It is the same as without.", "compile_jvp", BY_ROW),
    _row("A second derivative raises.", "Backward can be differentiated, any number of times.", "second_order"),
    _row("`torch.func.grad` raises.", "`torch.func.grad` and what is built on it work.", "func_grad"),
    _row(
        "A second backward pass over a retained graph raises, unless `allow_retain_graph` is asked for.",
        "A second pass has the same gradient.",
        "retained_graph",
    ),
    _row("`torch.compile(fullgraph=True)` raises.", "Forward and backward are one compiled graph.", "compile"),
    _row("Several cotangents in one pass raise.", "`is_grads_batched` works.", "batched_cotangent"),
    _row(
        "The gradients sit on the context until the graph is freed, where saved-tensor hooks do not see them.",
        "What is kept is saved, where hooks see it.",
        "ctx_clean",
    ),
)
