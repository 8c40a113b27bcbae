"""What the Functions of lxt return is the relevance that their docstrings define, and no gradient."""

import torch
from lxt import functional as lf
from lxt import rules

torch.manual_seed(0)
double = {"dtype": torch.float64}


def of(function, *given):
    """Return what arrives at the inputs for a random relevance of the output, the output, and that relevance."""
    given = [one.clone().requires_grad_() for one in given]
    y = function(*given)
    relevance = torch.rand(y.shape, **double)
    return torch.autograd.grad(y, given, relevance, allow_unused=True), y.detach(), relevance


def same(got, expected):
    """Raise unless two tensors are the same but for the epsilon that stabilizes a quotient."""
    assert torch.allclose(got, expected, rtol=1e-4, atol=1e-6)


x, z = torch.rand(4, 6, **double) + 0.5, torch.rand(4, 6, **double) + 0.5
weight, bias = torch.rand(3, 6, **double), torch.rand(3, **double)
(got, nothing, nor), y, r = of(lf.linear_epsilon, x, weight, bias)
same(got, x * ((r / y) @ weight))
assert nothing is None  # The rule is about the input: parameters have no relevance.
assert nor is None
(a, b), y, r = of(lf.matmul, x, z.T.contiguous())
same(a, x * ((r / (2 * y)) @ z))
same(a.sum() + b.sum(), r.sum())
(a, b), y, r = of(lf.add2, x, z)
same(a, x * r / y)
same(a + b, r)
(a, b), y, r = of(lf.mul2, x, z)
same(a, r / 2)
((a,), y, r) = of(lambda x: lf.mul2(x, z), x)
same(a, r)  # "If one of the inputs is a constant [...] the relevance is distributed 100% to the other."
((a,), y, r) = of(lambda x: lf.mean(x, 1, True), x)
same(a, x / x.sum(1, keepdim=True) * r)
((a,), y, r) = of(lambda x: lf.softmax(x, -1), x)
same(a, x * (r - y * r.sum(-1, keepdim=True)))
for identity in (lambda x: lf.normalize(x, dim=-1), rules.IdentityRule(torch.nn.GELU())):
    ((a,), y, r) = of(identity, x)
    same(a, r)
(a, nothing), y, r = of(lambda x, w: lf.rms_norm_identity(x, w, 1e-6), x, torch.rand(6, **double))
same(a, r)
assert nothing is None
(a, b), y, r = of(rules.UniformRule(torch.mul), x, z)
same(a, r / 2)
same(b, r / 2)
linear = torch.nn.Linear(6, 3).double()
((a,), y, r) = of(rules.EpsilonRule(linear), x)
same(a, x * ((r / y) @ linear.weight))
((a,), y, r) = of(rules.StopRelevanceRule(linear), x)
assert a is None
uniform = rules.UniformEpsilonRule(torch.matmul)
(a, b), y, r = of(uniform, x, z.T.contiguous())
same(a, x * ((r / (2 * y)) @ z))
((a,), y, r) = of(lambda x: uniform(x, z.T), x)
same(a, x * ((r / y) @ z))
print("13 rules return the relevance that their docstrings define")

x = torch.randn(2, 4, 6, **double)
scale, shift = torch.rand(6, **double), torch.rand(6, **double)
(a, *_), y, r = of(lambda x, w, b: lf.layer_norm(x, w, b, 1e-5), x, scale, shift)
moving = x.clone().requires_grad_()
spread = (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
centred = (moving - moving.mean(-1, keepdim=True)) / spread * scale + shift
(expected,) = torch.autograd.grad(centred, moving, r / (y + 1e-6))
assert torch.allclose(a, x * expected)
print("layer_norm: a plain call and its backward pass run, and return the relevance of their docstring")
for name, call in (
    ("TaylorDecompositionRule", lambda: rules.TaylorDecompositionRule(torch.tanh, ref=(torch.zeros_like(x),))(moving)),
    ("UniformEpsilonRule with one input that needs none", lambda: uniform(x, moving.transpose(1, 2))),
    ("mean over one element, its dimension dropped", lambda: lf.mean(moving[:, :1], 1, False)),
):
    try:
        call().sum().backward()
        raise AssertionError(name)
    except (RuntimeError, IndexError) as error:
        print(f"{name} raises: {str(error)[:90]}")
