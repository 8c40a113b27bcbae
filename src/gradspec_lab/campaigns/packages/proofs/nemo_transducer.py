"""The transducer loss of NeMo on a CPU: its gradient, its value without one, and a second backward pass."""

import torch
from differences import drawn, off

from gradspec_lab.campaigns.packages.absent import bare

bare(
    "nemo", "nemo.collections", "nemo.collections.asr", "nemo.collections.asr.parts", "nemo.collections.asr.parts.numba"
)
from nemo.collections.asr.parts.numba.rnnt_loss.rnnt_pytorch import RNNTLossNumba  # noqa: E402
from nemo.collections.asr.parts.numba.rnnt_loss.utils.cpu_utils.cpu_rnnt import LogSoftmaxGradModification  # noqa: E402

labels, lengths, sizes = torch.tensor([[1, 2], [2, 3]]), torch.tensor([3, 3]), torch.tensor([2, 2])
acts = drawn(2, 3, 3, 4)


def _plain(acts):
    """The sum over alignments, in plain torch."""
    scores, total = acts.log_softmax(-1), 0
    for one, wanted in zip(scores, labels, strict=True):
        alphas = {(0, 0): one.new_zeros(())}
        for t in range(3):
            for u in range(3):
                ways = []
                if t:
                    ways.append(alphas[t - 1, u] + one[t - 1, u, 0])
                if u:
                    ways.append(alphas[t, u - 1] + one[t, u - 1, wanted[u - 1]])
                if ways:
                    alphas[t, u] = torch.logsumexp(torch.stack(ways), 0)
        total = total - alphas[2, 2] - one[2, 2, 0]
    return total


for rate in (0.0, 0.01):
    loss = RNNTLossNumba(blank=0, reduction="sum", fastemit_lambda=rate)
    value = loss(acts, labels, lengths, sizes)
    (got,) = torch.autograd.grad(value.sum(), acts, retain_graph=True)
    (right,) = torch.autograd.grad(_plain(acts), acts)
    with torch.no_grad():
        without = loss(acts, labels, lengths, sizes)
    print(
        f"lambda {rate}: gradient off by {off(got, right):.1e} of that of the plain loss, {_plain(acts).item():.4f}; "
        f"value {value.item():.4f}, without a gradient {without.item():.4f}"
    )
    assert (abs(value.item() / without.item() - 1) > 0.005) == (rate > 0)
    assert rate or off(got, right) < 1e-6
    # The forward in float64 has a value in float32, which is flat only as far as its last digit.
    moved = loss((acts + 0.01 * torch.randn_like(acts)).detach().requires_grad_(), labels, lengths, sizes)
    assert moved.item() != value.item()

value = loss(acts, labels, lengths, sizes)
value.sum().backward(retain_graph=True)
said = ""
try:
    value.sum().backward()
except RuntimeError as error:
    said = str(error)
print(f"a second backward pass: {said[:90]}")
assert "modified by an inplace operation" in said

(got,) = torch.autograd.grad(LogSoftmaxGradModification.apply(acts, 0.1), acts, 10 * torch.ones_like(acts))
assert torch.equal(got, torch.full_like(got, 0.1))
assert "clamp the gradient to [-clamp, clamp]" in " ".join(RNNTLossNumba.__doc__.split())
print("clamp: as documented")
