"""The quaternion layer of speechbrain with `autograd=False`: what is frozen decides what the others get."""

import torch
from differences import drawn, off

from gradspec_lab.campaigns.packages.absent import absent, bare

absent("torchaudio", "soundfile", "hyperpyyaml", "sentencepiece", "joblib", "tqdm", "huggingface_hub")
bare("speechbrain", "speechbrain.nnet", "speechbrain.nnet.quaternion_networks")
from speechbrain.nnet.quaternion_networks.q_linear import QLinear  # noqa: E402
from speechbrain.nnet.quaternion_networks.q_ops import QuaternionLinearCustomBackward, quaternion_linear_op  # noqa: E402

arguments = [drawn(15, 8), *(drawn(2, 2, seed=n) for n in range(1, 5)), drawn(8, seed=5)]
cotangent = torch.randn(15, 8, dtype=torch.float64)
got, right = (
    torch.autograd.grad(f(*arguments), arguments, cotangent)
    for f in (QuaternionLinearCustomBackward.apply, quaternion_linear_op)
)
print(f"with all trained: off by at most {max(map(off, got, right)):.0e} of plain autograd")
assert max(map(off, got, right)) < 1e-6

torch.manual_seed(0)
x, found = torch.randn(3, 5, 8), {}
for autograd in (True, False):
    torch.manual_seed(1)
    layer = QLinear(n_neurons=2, input_shape=[3, 5, 8], autograd=autograd)
    torch.nn.init.ones_(layer.bias)
    layer.r_weight.requires_grad_(False)
    layer(x).square().sum().backward()
    given = {name: p.grad is not None for name, p in layer.named_parameters() if p.requires_grad}
    trained = layer(x).sum().item()
    layer.bias.requires_grad_(False)
    found[autograd] = given, trained - layer(x).sum().item()
    print(f"autograd={autograd}, r_weight frozen: who gets a gradient: {given}")
    print(f"autograd={autograd}: of 120 that the bias adds, {found[autograd][1]:.1f} is lost where it is frozen")
assert all(found[True][0].values())
assert not any(found[False][0][name] for name in ("i_weight", "j_weight", "k_weight"))
# A frozen bias is left out of the output, with autograd too.
assert abs(found[False][1] - 3 * 5 * 8) < 1e-3
