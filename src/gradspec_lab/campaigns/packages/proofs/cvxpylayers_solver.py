"""The gradient of cvxpylayers is as exact as its solver: with a tighter tolerance the difference goes away."""

import cvxpy as cp
from cvxpylayers.torch import CvxpyLayer
from differences import both, drawn, off

x, A, b = cp.Variable(2), cp.Parameter((3, 2)), cp.Parameter(3)
problem = cp.Problem(cp.Minimize(cp.sum_squares(A @ x - b) + 0.1 * cp.sum_squares(x)), [x >= 0])
layer = CvxpyLayer(problem, parameters=[A, b], variables=[x])
apart = {}
for name, options in (("as it is", {}), ("1e-10", {"eps": 1e-10})):
    pairs = both(lambda *given, options=options: layer(*given, solver_args=options)[0], drawn(3, 2), drawn(3, seed=1))
    apart[name] = max(off(*pair) for pair in pairs)
    print(f"tolerance {name}: off by {apart[name]:.0e}")
assert apart["as it is"] < 1e-2
assert apart["1e-10"] < 1e-4
