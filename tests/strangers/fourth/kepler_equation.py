"""Eccentric anomaly E of Kepler's equation  E - e sin E = M,  differentiated implicitly."""

import torch


def _newton(mean_anomaly, ecc, steps=25):
    e_anom = mean_anomaly + ecc * torch.sin(mean_anomaly)
    for _ in range(steps):
        resid = e_anom - ecc * torch.sin(e_anom) - mean_anomaly
        e_anom = e_anom - resid / (1 - ecc * torch.cos(e_anom))
    return e_anom


class Kepler(torch.autograd.Function):
    @staticmethod
    def forward(ctx, mean_anomaly, ecc):
        out = _newton(mean_anomaly, ecc)
        ctx.save_for_backward(out, ecc)
        ctx.shapes = mean_anomaly.shape, ecc.shape
        return out

    @staticmethod
    def backward(ctx, grad):
        e_anom, ecc = ctx.saved_tensors
        m_shape, e_shape = ctx.shapes
        lam = grad / (1 - ecc * torch.cos(e_anom))
        return lam.sum_to_size(m_shape), (lam * torch.sin(e_anom)).sum_to_size(e_shape)


def eccentric_anomaly(mean_anomaly, ecc):
    return Kepler.apply(mean_anomaly, ecc)


def primal(mean_anomaly, ecc):
    return _newton(mean_anomaly, ecc)


surrogate = primal
FUNCTION = eccentric_anomaly
WRT = ("mean_anomaly", "ecc")


def _m(seed, *shape):
    return 6 * torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 3


CALLS = [
    lambda: (_m(0, 7), torch.tensor(0.3, dtype=torch.float64)),
    lambda: (_m(1, 4, 1), torch.tensor([0.0, 0.2, 0.6], dtype=torch.float64)),
    lambda: (_m(2, 3), _m(3, 3).abs() / 5),
]
LIMITS = ("vmap", "jvp", "half")
DEFECT = ""
KEYWORDS = ()
