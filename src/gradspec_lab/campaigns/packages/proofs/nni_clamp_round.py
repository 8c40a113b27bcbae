"""Two quantizers of nni zero the caller's gradient; `ramp` adds a constant to it; LSQ+ is right in any layout."""

from types import SimpleNamespace

import torch
from differences import drawn, off

from gradspec_lab.campaigns.packages.absent import absent, bare

absent("pytorch_lightning", "lightning", "transformers", "deepspeed", "pandas", "sklearn")
selector = "nni.algorithms.feature_engineering.gradient_selector"
bare(
    "nni",
    "nni.compression",
    "nni.compression.base",
    "nni.compression.utils",
    "nni.algorithms",
    selector.rpartition(".")[0],
    selector,
)
from nni.algorithms.feature_engineering.gradient_selector.learnability import ramp  # noqa: E402
from nni.compression.base.apply_method import quant_apply_methods  # noqa: E402
from nni.compression.base.target_space import TargetType  # noqa: E402

scale, zero = torch.tensor(0.2, dtype=torch.float64), torch.tensor(1.0, dtype=torch.float64)
space = SimpleNamespace(
    qmin=-3, qmax=3, scale=scale, zero_point=zero, _scaler=None, shape=[4, 5], type=TargetType.OUTPUT
)
x, other = drawn(4, 5), drawn(4, 5, seed=1)
for name in ("qat_clamp_round", "bnn_clamp_round"):
    outer = 0
    for order in (0, 1):
        # The same sum, its terms in either order: `other` is added as it is, so its gradient is 1.
        quantized = quant_apply_methods[name](x, space)
        total = quantized + other if order == 0 else other + quantized
        (got,) = torch.autograd.grad(total, other, torch.ones(4, 5, dtype=torch.float64), retain_graph=True)
        assert torch.equal(got, torch.ones_like(got))
        given = torch.autograd.grad(total, (x, other), torch.ones(4, 5, dtype=torch.float64))
        outer = max(outer, int((given[1] != 1).sum()))
    print(f"{name}: in quantized + other, {outer} of 20 gradients of `other` are 0, and all are 1")
    assert outer > 0
    kept = torch.ones(4, 5, dtype=torch.float64)
    quant_apply_methods[name](x, space).backward(kept)
    assert int((kept == 0).sum()) > 0

cotangent = torch.zeros(4, 5, dtype=torch.float64)
(got,) = torch.autograd.grad(ramp.apply(x), x, cotangent)
print(f"ramp: without any cotangent its gradient is {sorted(set(got.flatten().tolist()))}")
assert set(got.flatten().tolist()) == {0.01, -0.01, 0.0}
assert torch.equal(got[x < 0], torch.full_like(got[x < 0], 0.01))

scale, zero = scale.clone().requires_grad_(), zero.clone().requires_grad_()
space.scale, space.zero_point = scale, zero
result, plain = quant_apply_methods["lsq_plus_clamp_round"](x, space), drawn(4, 5, seed=2).detach()
layouts = {"plain": plain, "transposed": plain.T.contiguous().T, "strided": plain.repeat_interleave(2, 1)[:, ::2]}
found = {n: torch.autograd.grad(result, (x, scale, zero), c, retain_graph=True) for n, c in layouts.items()}
first = max(off(a, b) for n in found for a, b in zip(found[n], found["plain"], strict=True))
second = []
for cotangent in layouts.values():
    asked = cotangent.clone(memory_format=torch.preserve_format).requires_grad_()
    given = torch.autograd.grad(result, (x, scale), asked, create_graph=True, retain_graph=True)
    second.append(torch.autograd.grad(given[0].sum() + given[1], asked, retain_graph=True)[0])
again = max(off(one, second[0]) for one in second)
print(f"LSQ+: the gradients of three layouts differ by {first:.0e}, the second order by {again:.0e} of themselves")
assert max(first, again) < 1e-6
