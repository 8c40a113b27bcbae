"""Guided backpropagation of grad-cam: it drops negative cotangents, as the method does, and is no derivative."""

import torch
from differences import drawn

from gradspec_lab.campaigns.packages.absent import absent, bare

absent("cv2", "PIL", "matplotlib", "torchvision", "tqdm", "ttach")
bare("pytorch_grad_cam", "pytorch_grad_cam.utils")
from pytorch_grad_cam.guided_backprop import GuidedBackpropReLU  # noqa: E402

x, cotangent = drawn(50), drawn(50, seed=1).detach()
(got,) = torch.autograd.grad(GuidedBackpropReLU.apply(x), x, cotangent)
(relu,) = torch.autograd.grad(torch.relu(x), x, cotangent)
assert torch.equal(GuidedBackpropReLU.apply(x), torch.relu(x))
print(f"relu for positive cotangents, 0 for the others: {torch.equal(got, relu.clamp(min=0))}")
assert torch.equal(got, relu.clamp(min=0))
(one, two) = (torch.autograd.grad(GuidedBackpropReLU.apply(x), x, sign * cotangent)[0] for sign in (1, -1))
print(f"not linear in the cotangent: g(v) + g(-v) is {(one + two).norm():.1f}")
assert (one + two).norm() > 1
