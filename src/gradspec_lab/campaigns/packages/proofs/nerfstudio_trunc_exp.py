"""The exponential of nerfstudio has its gradient at the ends of [-15, 15] beyond them, as its docstring says."""

from pathlib import Path

import torch

from gradspec_lab.campaigns.packages.absent import absent, bare

absent("torchvision", "tyro", "nerfacc", "rich", "PIL", "cv2", "viser", "imageio", "tinycudann")
bare("nerfstudio", "nerfstudio.field_components")
activations = __import__("nerfstudio.field_components.activations", fromlist=["trunc_exp"])

x = torch.tensor([-20.0, -15.0, 0.0, 2.0, 15.0, 17.0], dtype=torch.float64, requires_grad=True)
(gradient,) = torch.autograd.grad(activations.trunc_exp(x).sum(), x)
print(
    {
        end: f"{got:.3g}, true {true:.3g}"
        for end, got, true in zip(x.tolist(), gradient.tolist(), x.exp().tolist(), strict=True)
    }
)
assert torch.allclose(gradient, x.clamp(-15, 15).exp(), rtol=1e-5)
source = Path(activations.__file__).read_text(encoding="utf-8")
assert "backward pass clipped to prevent vanishing/exploding" in source
