"""`gradspec::instance_discrimination_loss`: loss and gradient against a memory bank, in one forward pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradspec.functions import INSTANCE_DISCRIMINATION_LOSS
from gradspec.functions._instance_discrimination._checks import CALL, checked_embeddings
from gradspec.functions._instance_discrimination._function import bank_loss, bank_point
from gradspec.functions._instance_discrimination._gradient import hessian_product
from gradspec.functions._linear_cross_entropy._checks import checked_temperature
from gradspec.functions._linear_cross_entropy._values import Values
from gradspec.operators._registered import register
from gradspec.spec import Argument, Case, Make, Misuse, OperatorSpec, Saved


def _kernel(x: Tensor, y: Tensor, memory: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    loss, gradient, *_ = Values.forward(*bank_point(x, y, memory, temperature), False)
    return loss.contiguous(), gradient.contiguous()


def _fake(x: Tensor, y: Tensor, memory: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape[:-1]), x.new_empty(x.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    # In the first backward pass nothing flows to the gradient, and a product of zeros with the Hessian would be slow.
    ctx.set_materialize_grads(False)
    x, _, memory, ctx.temperature = inputs
    ctx.save_for_backward(x, memory, output[1])


def _backward(ctx: Any, of_loss: Tensor | None, of_gradient: Tensor | None) -> tuple[Tensor | None, None, None, None]:
    r"""Return :math:`\bar{L}\,g + H\,\bar{g}`: the gradient is kept as an output, so that it has a derivative too."""
    x, memory, gradient = ctx.saved_tensors
    terms = [] if of_loss is None else [of_loss.unsqueeze(-1) * gradient]
    if of_gradient is not None:
        terms.append(hessian_product(x, memory, ctx.temperature, of_gradient).to(x.dtype))
    return (sum(terms[1:], terms[0]) if terms else None), None, None, None


def _vmap(info: Any, in_dims: tuple[int | None, ...], *given: Any) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
    """Run the rows of the batch in turn: a bank each may be batched."""

    def row(k: int) -> tuple[Tensor, Tensor]:
        places = zip(given, in_dims, strict=True)
        return _call(*(value if dim is None else value.select(dim, k) for value, dim in places))

    rows = [row(k) for k in range(info.batch_size)]
    losses, gradients = zip(*rows, strict=True)
    return (torch.stack(losses), torch.stack(gradients)), (0, 0)


register(
    "instance_discrimination_loss",
    "(Tensor x, Tensor y, Tensor memory, float temperature) -> (Tensor, Tensor)",
    _kernel,
    fake=_fake,
    backward=_backward,
    setup_context=_keep,
    vmap=_vmap,
)


def instance_discrimination_loss(x: Tensor, y: Tensor, memory: Tensor, temperature: float) -> Tensor:
    """Return the loss of each embedding against all the rows of a memory bank.

    It is `gradspec.functions.InstanceDiscriminationLoss` as an operator, which `torch.export` keeps as one call: an
    exported program has no buffer of B x N logits.

    Args:
        x: shape (B, D), floating: the embeddings, used as they are given, not normalised.
        y: shape (B,), int64: the row of the bank that each embedding is an instance of, from 0 to N - 1.
        memory: shape (N, D), dtype and device of `x`: the bank. No gradient flows to it.
        temperature: above 0.

    Returns:
        Shape (B,), dtype and device of `x`.

    Raises:
        TypeError: one is not a tensor, the embeddings are not floating, the bank is of another dtype, `y` is not int64,
            or the temperature is not floating, or neither a float nor a 0-d tensor.
        ValueError: shapes, numbers of features or devices do not fit, the bank has no row, the temperature is not
            above 0, or the bank or the temperature is differentiated.
        IndexError: `y` is not a row of the bank.

    Example:
        >>> import torch
        >>> memory = torch.eye(4)
        >>> x = torch.tensor([[0.0, 1.0, 0.0, 0.0]], requires_grad=True)
        >>> instance_discrimination_loss(x, torch.tensor([1]), memory, 0.5).sum().backward()
        >>> x.grad  # (softmax - one-hot) / 0.5
        tensor([[ 0.1925, -0.5775,  0.1925,  0.1925]])
    """
    scale = checked_temperature(CALL, temperature)
    x = checked_embeddings(x, y, memory)
    return _call(x, y, memory, scale)[0]


def _call(*args: Any) -> tuple[Tensor, Tensor]:
    found: tuple[Tensor, Tensor] = torch.ops.gradspec.instance_discrimination_loss(*args)
    return found


def _plain(x: Tensor, y: Tensor, memory: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    weights = (x @ memory.mT / temperature).softmax(-1)
    own = torch.nn.functional.one_hot(y, len(memory)).to(x.dtype)
    return bank_loss(x, y, memory, temperature), (weights - own) @ memory / temperature


#: Those of the function that say something else of an operator.
_CASES = (
    "small bank",
    "large bank",
    "temperature 0.07",
    "repeated instances",
    "transposed embeddings and bank",
    "float32",
    "empty batch",
)


def _cases(make: Make) -> Iterator[Case]:
    for case in INSTANCE_DISCRIMINATION_LOSS.cases(make):
        *given, temperature = case.args
        if case.name in _CASES:
            # The gradient is an output, whose derivative at 0.07 is a difference of numbers 200 times as large.
            yield replace(case, name="temperature 0.2", args=(*given, 0.2)) if temperature == 0.07 else case


def _misuses(make: Make) -> Iterator[Misuse]:
    assert INSTANCE_DISCRIMINATION_LOSS.raises is not None
    for misuse in INSTANCE_DISCRIMINATION_LOSS.raises(make):
        if misuse.call is None:
            yield replace(misuse, call=instance_discrimination_loss)


INSTANCE_DISCRIMINATION_LOSS_OPERATOR = OperatorSpec(
    name="gradspec::instance_discrimination_loss",
    operator="gradspec::instance_discrimination_loss",
    primal=_plain,
    wrt=("x",),
    cases=_cases,
    raises=_misuses,
    arguments=tuple(
        Argument(name=a.name, type="float", range=a.range, text="What the logits are divided by.")
        if a.name == "temperature"
        else a
        for a in INSTANCE_DISCRIMINATION_LOSS.arguments
    ),
    saved=Saved(text="nothing: the gradient is an output", bytes=lambda x, y, memory, temperature: 0),
    documented=(instance_discrimination_loss,),
    references=INSTANCE_DISCRIMINATION_LOSS.references,
)
