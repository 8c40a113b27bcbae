"""`blackboxOpt` of pyepo returns the interpolated gradient of its docstring, which is not linear in the cotangent."""

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from gradspec_lab.campaigns.packages.absent import absent

absent("pathos", "autosklearn")
pyepo = __import__("pyepo")


class Matching(pyepo.model.opt.optModel):
    """The cheapest matching of three with three."""

    def _getModel(self):  # noqa: N802
        return None, list(range(9))

    def setObj(self, c):  # noqa: N802
        """Take the costs."""
        self.cost = np.asarray(c, dtype=float).reshape(3, 3)

    def solve(self):
        """Return the matching and its cost."""
        rows, columns = linear_sum_assignment(self.cost)
        chosen = np.zeros((3, 3))
        chosen[rows, columns] = 1
        return chosen.ravel(), float((self.cost * chosen).sum())


torch.manual_seed(0)
model = Matching()


def solved(costs):
    """Return the solutions of a batch."""
    found = []
    for one in costs:
        model.setObj(one.numpy())
        found.append(torch.as_tensor(model.solve()[0]))
    return torch.stack(found)


costs = torch.randn(5, 9, dtype=torch.float64, requires_grad=True)
layer = pyepo.func.blackboxOpt(model, lambd=10)
y, d = layer(costs), torch.randn(5, 9, dtype=torch.float64)
(got,) = torch.autograd.grad(y, costs, d, retain_graph=True)
expected = (solved(costs.detach() + 10 * d) - solved(costs.detach())) / 10
assert torch.allclose(got, expected)
assert "\\mathbf{w}^*(\\hat{\\mathbf{c}} + \\lambda \\mathbf{d}) -" in " ".join(type(layer).__doc__.split())
(thrice,) = torch.autograd.grad(y, costs, 3 * d)
print(f"(w(c + 10 d) - w(c)) / 10 it is; of three times d it is {float(thrice.norm() / got.norm()):.2f} times as long")
