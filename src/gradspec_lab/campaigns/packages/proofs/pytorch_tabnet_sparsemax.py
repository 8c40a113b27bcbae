"""`sparsemax` of pytorch-tabnet subtracts the maximum from the caller's tensor, in place and unmarked."""

import torch
from pytorch_tabnet.sparsemax import Sparsemax, SparsemaxFunction

scores = torch.tensor([[1.0, 2.0, 4.0]], dtype=torch.float64, requires_grad=True)
logits = scores * 1
Sparsemax(dim=-1)(logits)
print(f"the logits were {scores.tolist()}, and are {logits.tolist()} after the call")
assert torch.equal(logits, scores - 4)

# A loss that uses them again is another one: 7 without the call, -5 after it; and a saved result breaks backward.
print(f"their sum was {scores.sum().item()}, and is {logits.sum().item()}")
assert logits.sum().item() == scores.sum().item() - 12
saved = scores.exp()
SparsemaxFunction.apply(saved, -1)
try:
    torch.autograd.grad(saved.sum(), scores)
except RuntimeError as error:
    print(f"exp() before it: {str(error)[:90]}...")
else:
    raise AssertionError("torch did not notice")
assert "in place" not in (SparsemaxFunction.forward.__doc__ or "").lower()
