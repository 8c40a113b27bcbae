r"""The gradient of the instance-discrimination loss as a function of its own, with the derivative that it has.

.. math::

    g(x) = \frac{1}{T} \Bigl( \sum_j p_j k_j - k_y \Bigr), \qquad
    H v = \frac{1}{T^2} \sum_j p_j\, \bigl(k_j \cdot v - m \cdot v\bigr)\, k_j, \qquad
    m = \sum_j p_j k_j

The Hessian :math:`H` is symmetric, so the backward pass and forward mode are one function. It is slower than the
first derivative: four matrix products, in plain torch, a chunk of the bank at a time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from gradspec.functions._linear_cross_entropy._log_sum_exp import merge_by_log_sum_exp
from gradspec.functions._linear_cross_entropy._logits import Temperature, spans, working
from gradspec.functions._torch import without_autocast


class LossGradient(Function):
    """The gradient of each row, given its value: only a derivative of it computes anything.

    Its derivative reads the bank, which is saved where torch sees it move: after an update of the bank a double
    backward raises.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, memory: Tensor, temperature: Temperature, gradient: Tensor) -> Tensor:
        """Return a copy of the value."""
        return gradient.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Temperature, Tensor], output: Tensor) -> None:
        """Keep what the Hessian is made of."""
        x, memory, temperature, _ = inputs
        # In the first backward pass nothing flows here, and a product of zeros with the Hessian would be slow.
        ctx.set_materialize_grads(False)
        ctx.temperature = None if isinstance(temperature, Tensor) else temperature
        kept = (x, memory, *([temperature] if isinstance(temperature, Tensor) else []))
        ctx.save_for_backward(*kept)
        ctx.save_for_forward(*kept)

    @staticmethod
    def backward(ctx: Any, vector: Tensor | None) -> tuple[Tensor | None, None, None, None]:
        """Return the Hessian times the cotangent."""
        if vector is not None:
            return _product(ctx, vector), None, None, None
        # Compiled autograd adds what comes to `x` by its two paths, and takes no None for a sum.
        return (torch.zeros_like(ctx.saved_tensors[0]) if torch.compiler.is_compiling() else None), None, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor | None:
        """Return the Hessian times the tangent of x."""
        return None if tangents[0] is None else _product(ctx, tangents[0])


def _product(ctx: Any, vector: Tensor) -> Tensor:
    x, memory, *temperature = ctx.saved_tensors
    return hessian_product(x, memory, temperature[0] if temperature else ctx.temperature, vector)


def hessian_product(x: Tensor, memory: Tensor, temperature: Temperature, vector: Tensor) -> Tensor:
    """Return the Hessian of the loss of each row times a vector; differentiable in `x` and `vector`.

    Args:
        x: shape (B, D).
        memory: shape (N, D).
        temperature: a float, or a 0-d tensor.
        vector: shape (B, D).
    """
    if 0 in x.shape:
        return x * vector  # as empty as both
    with without_autocast(x):
        queries, v = working(x) / temperature, working(vector)
        total: Moments | None = None
        for span in spans(x, memory):
            part = _moments(queries, v, memory[span].to(queries.dtype))
            total = part if total is None else _merged(total, part)
        assert total is not None, "a bank has a row"
        product = total[0] / temperature / temperature
    return product.to(x.dtype)


#: Under the softmax of a part of the bank: the covariance of k and k . v, the means of both, and the log-sum-exp.
Moments = tuple[Tensor, Tensor, Tensor, Tensor]


def _moments(queries: Tensor, v: Tensor, keys: Tensor) -> Moments:
    logits, slopes = queries @ keys.mT, v @ keys.mT
    p = logits.softmax(-1)
    # Centred before the product: the difference of two large products would lose its digits. And first by the slope of
    # the most probable key, a constant that p (s - E[s]) does not depend on: where its p is nearly 1, so does E[s].
    origin = slopes.gather(-1, logits.argmax(-1, keepdim=True)).detach()
    slopes = slopes - origin
    slope = (p * slopes).sum(-1, keepdim=True)
    return (p * (slopes - slope)) @ keys, p @ keys, origin + slope, logits.logsumexp(-1)


# L = log sum_j e^{q . k_j} - q . k_y with q = x / T, so its gradient by x is (E[k] - k_y) / T under p = softmax(q . k).
# Along v, dp_j = p_j (k_j . v - E[k . v]) / T (Bridle 1990), hence
#   H v = d(E[k]) / T = E[(k . v - E[k . v]) k] / T^2 = Cov(k, k . v) / T^2.
# Of parts s of the bank with weights pi_s = e^{l_s - l}, means m_s, mu_s of k and k . v, and covariances C_s:
#   E[(k . v - mu) k] = sum_s pi_s E_s[(k . v - mu_s) k + (mu_s - mu) k] = sum_s pi_s (C_s + (mu_s - mu) m_s)
# the covariance within the parts and between them (Chan, Golub, LeVeque, Algorithms for computing the sample variance,
# 1983).
def _merged(*parts: Moments) -> Moments:
    covariances, means, slopes, log_sum_exps = (torch.stack(both) for both in zip(*parts, strict=True))
    slope, _ = merge_by_log_sum_exp(slopes, log_sum_exps)
    within_and_between = covariances + (slopes - slope) * means
    covariance, log_sum_exp = merge_by_log_sum_exp(within_and_between, log_sum_exps)
    return covariance, merge_by_log_sum_exp(means, log_sum_exps)[0], slope, log_sum_exp
