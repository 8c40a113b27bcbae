"""Proves the pairs and the sound functions in plain torch: truth.py [NN ...] or truth.py sound [name ...].

A mended or sound function is held against central differences of its own values, or against autograd of a plain
formula where its gradient is meant to be another one, for several layouts of the cotangent, and its second derivative
against central differences of the first one, unless it refuses it.
"""

import importlib.util
import itertools
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

HERE = Path(__file__).parent
Thunk = Callable[[], Any]


# The tools.


def load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("_".join(file.parts[-2:]).removesuffix(".py"), file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def called(call: str) -> list[Any]:
    """The arguments of a call; without a dtype of their own, they are in the default one."""
    return list(eval(call, {**vars(torch)}))


@contextmanager
def default(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def outs(y: Any) -> list[Tensor]:
    return [t for t in (y if isinstance(y, tuple | list) else (y,)) if torch.is_tensor(t) and _moves(t)]


def _moves(t: Tensor) -> bool:
    return t.is_floating_point() or t.is_complex()


def leaves(args: Sequence[Any]) -> list[Tensor]:
    return [a for a in args if torch.is_tensor(a) and a.requires_grad]


def vjp(ys: list[Tensor], xs: list[Tensor], vs: list[Tensor], **more: bool) -> list[Tensor]:
    kept = [(y, v) for y, v in zip(ys, vs, strict=True) if y.requires_grad]
    if not kept:
        return [torch.zeros_like(x) for x in xs]
    ys, vs = ([pair[i] for pair in kept] for i in (0, 1))
    grads = torch.autograd.grad(ys, xs, vs, allow_unused=True, **more)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(grads, xs, strict=True)]


def inner(ys: list[Tensor], vs: list[Tensor]) -> Tensor:
    """Re<v, y>, of which torch's gradient is what a vector-Jacobian product is."""
    return sum((y * v.conj()).real.sum() if y.is_complex() else (y * v).sum() for y, v in zip(ys, vs, strict=True))


def slopes(scalar: Callable[[], Tensor], xs: list[Tensor], h: float = 1e-6) -> list[Tensor]:
    """Central differences of a number in every entry of `xs`, which are moved in place and put back."""
    found = []
    for x in xs:
        g = torch.zeros_like(x)
        for at in itertools.product(*map(range, x.shape)):
            for step in (1, 1j) if x.is_complex() else (1,):
                old, ends = x.data[at].clone(), []
                for sign in (1, -1):
                    x.data[at] = old + sign * h * step
                    ends.append(float(scalar().detach()))
                x.data[at] = old
                g[at] += (ends[0] - ends[1]) / (2 * h) * step
        found.append(g)
    return found


def numeric(f: Thunk, xs: list[Tensor], vs: list[Tensor]) -> list[Tensor]:
    with torch.no_grad():
        return slopes(lambda: inner(outs(f()), vs), xs)


def far(a: Sequence[Tensor], b: Sequence[Tensor]) -> float:
    """The largest difference; infinite where one is NaN."""
    worst = 0.0
    for x, y in zip(a, b, strict=True):
        if x.numel():
            d = (x.detach() - y.detach()).abs().max().item()
            worst = max(worst, d if d == d else float("inf"))
    return worst


def random_like(ys: list[Tensor]) -> list[Tensor]:
    return [torch.randn_like(y) for y in ys]


def same(name: str, a: Sequence[Tensor], b: Sequence[Tensor], tol: float = 1e-9) -> None:
    assert far(a, b) <= tol, f"{name}: off by {far(a, b):.3g}"


def strided(v: Tensor) -> Tensor:
    """The same numbers, of which the last dimension is not the one that is contiguous."""
    wide = v.new_full((*v.shape, 2), 7.0)
    wide[..., 0] = v
    return wide[..., 0] if v.ndim < 2 else v.mT.contiguous().mT


def healthy(f: Thunk, xs: list[Tensor], rest: Sequence[Any], plain: Thunk | None = None, tol: float = 1e-5) -> float:
    """How far the gradient is from what it should be, after all that a sound function has to withstand."""
    ys = outs(f())
    vs = random_like(ys)
    before = [t.detach().clone() for t in (*xs, *vs, *(t for t in rest if torch.is_tensor(t)))]
    got = vjp(ys, xs, vs, retain_graph=True)
    want = numeric(f, xs, vs) if plain is None else vjp(outs(plain()), xs, vs)
    error = far(got, want)
    assert error < tol, f"gradient off by {error:.3g}"
    same("a second backward", vjp(ys, xs, vs, retain_graph=True), got)
    same("what was handed in is changed", (*xs, *vs, *(t for t in rest if torch.is_tensor(t))), before, 0.0)
    same("a second call", vjp(outs(f()), xs, vs), got)
    same("a strided cotangent", vjp(ys, xs, [strided(v) for v in vs], retain_graph=True), got)
    ones = vjp(ys, xs, [torch.ones_like(y) for y in ys], retain_graph=True)
    same("an expanded cotangent", vjp(ys, xs, [y.new_ones(()).expand_as(y) for y in ys], retain_graph=True), ones)
    if len(ys) > 1:
        alone = [vjp([y], xs, [v], retain_graph=True) for y, v in zip(ys, vs, strict=True) if y.requires_grad]
        same("one output at a time", [sum(parts) for parts in zip(*alone, strict=True)], got)
    twice(f, xs, vs)
    return error


def twice(f: Thunk, xs: list[Tensor], vs: list[Tensor]) -> None:
    """The second derivative is that of the first one, or it is refused."""
    vs = [v.clone().requires_grad_() for v in vs]
    grads = vjp(outs(f()), xs, vs, create_graph=True)
    ws = random_like(grads)
    moving = [(g, w) for g, w in zip(grads, ws, strict=True) if g.requires_grad]
    try:  # autograd.grad alone would not run into the node that refuses
        for g, w in moving:
            torch.autograd.backward(g, w, retain_graph=True)
    except RuntimeError as error:
        if "once_differentiable" in str(error) or "no autograd formula" in str(error):
            return
        raise
    finally:
        for t in (*xs, *vs):
            t.grad = None
    got = vjp(grads, [*xs, *vs], ws)
    want = slopes(lambda: inner(vjp(outs(f()), xs, vs), ws), [*xs, *vs])
    same("second derivative", got, want, 1e-4 * (1 + max(g.abs().max().item() for g in want)))


def entry(f: Any) -> Callable[..., Any]:
    return f.apply if isinstance(f, type) and issubclass(f, torch.autograd.Function) else f


# The pairs.


class Pair:
    def __init__(self, row: dict[str, Any]) -> None:
        self.row = row
        self.ops = load(HERE / row["folder"] / "ops.py")
        self.bad, self.good = (getattr(self.ops, row[key]) for key in ("name", "mended"))
        self.f, self.g = entry(self.bad), entry(self.good)

    def args(self) -> list[Any]:
        return called(self.row["call"])

    def modules(self) -> tuple[nn.Module, nn.Module]:
        """Both modules, of the same parameters."""
        bad, good = (kind(*called(self.row["construct"])) for kind in (self.bad, self.good))
        good.load_state_dict(bad.state_dict())
        return bad, good


def by_differences(pair: Pair, plain: Callable[..., Any] | None = None, wrong: Sequence[int] | None = None) -> str:
    """The mended one is healthy at the call of the table, and the defective one is off, in `wrong` only."""
    args = pair.args()
    xs = leaves(args)
    o = healthy(lambda: pair.g(*args), xs, args, plain and (lambda: plain(*args)))
    vs = random_like(outs(pair.g(*args)))
    right = vjp(outs(pair.g(*args)), xs, vs)
    got = vjp(outs(pair.f(*args)), xs, vs)
    same("values", outs(pair.f(*args)), outs(pair.g(*args)), 0.0)
    if pair.row["kind"] == "operator":
        torch.library.opcheck(pair.good, args)
    each = [far([a], [b]) for a, b in zip(got, right, strict=True)]
    for i, e in enumerate(each):
        assert (e > 1e-3) == (wrong is None or i in wrong), f"gradients off by {each}"
    return f"defective off by {max(each):.3g}, mended by {o:.2g}"


def p01(pair: Pair) -> str:
    args = pair.args()
    o = healthy(lambda: pair.g(*args), leaves(args), args)
    start, target = args
    found = []
    for f in (pair.f, pair.g):
        x = start.detach().clone().requires_grad_()
        found += vjp([f(x.softmax(-1), target)], [x], [torch.ones(())])
    old = start.detach().clone()
    pair.f(start, target)
    assert far(found[:1], found[1:]) > 1e-3
    assert far([start], [old]) > 1e-3
    return (
        f"behind a softmax defective off by {far(found[:1], found[1:]):.3g}, and its input is changed; mended {o:.2g}"
    )


def p03(pair: Pair) -> str:
    args = pair.args()
    xs = leaves(args)
    o = healthy(lambda: pair.g(*args), xs, args)
    y = pair.f(*args)
    v = torch.randn_like(y)
    right = vjp([pair.g(*args)], xs, [v])
    same("a contiguous cotangent", vjp([y], xs, [v], retain_graph=True), right)
    e = far(vjp([y], xs, [strided(v)]), right)
    assert e > 1e-3
    return f"transposed cotangent: defective off by {e:.3g}, mended by {o:.2g}; contiguous: both right"


def p04(pair: Pair) -> str:
    args = pair.args()
    o = healthy(lambda: pair.g(*args), args, args)
    v = torch.randn_like(args[0])
    same("first derivative", vjp([pair.f(*args)], args, [v]), vjp([pair.g(*args)], args, [v]))
    seconds = []
    for f in (pair.f, pair.g):
        (grad,) = vjp([f(*args)], args, [v], create_graph=True)
        seconds += vjp([grad], args, [torch.ones_like(v)])
    same("mended", seconds[1:], [2 * v])
    assert far(seconds[:1], [2 * v]) > 1e-3
    return f"second derivative: defective off by {far(seconds[:1], [2 * v]):.3g}; first: {o:.2g}"


def p06(pair: Pair) -> str:
    args = pair.args()
    o = healthy(lambda: pair.g(*args), leaves(args), args)
    x = args[0]
    old, v = x.detach().clone(), torch.randn(4)
    (right,) = vjp([pair.g(*args)], [x], [v])
    y = pair.f(*args)
    (first,) = vjp([y], [x], [v], retain_graph=True)
    same("the first backward", [first.clone()], [right])
    changed = far([x], [old])
    (second,) = vjp([y], [x], [v])
    assert far([second], [right]) > 1e-3
    assert changed > 1e-3
    return f"second backward: defective off by {far([second], [right]):.3g}, and its input is changed; mended {o:.2g}"


def p07(pair: Pair) -> str:
    args = pair.args()
    o = healthy(lambda: pair.g(*args), args[:1], args, lambda: torch.sigmoid(args[1] * args[0]))
    with default(torch.float32):
        args = pair.args()
        v = torch.ones(4)
        (bad,), (good,) = (vjp([f(*args)], args[:1], [v]) for f in (pair.f, pair.g))
    assert bad[0].isnan()
    assert good.isfinite().all()
    same("elsewhere", [bad[1:]], [good[1:]], 1e-5)
    return (
        f"float32 at -5: defective {bad[0].item()}, mended {good[0].item():.2g}; mended off by {o:.2g} of the sigmoid"
    )


def p08(pair: Pair) -> str:
    (m,) = pair.args()
    v = torch.randn(4)
    (bad,), (good,) = (vjp([f(m)], [m], [v]) for f in (pair.f, pair.g))
    assert bad.isnan().any()
    assert good.isfinite().all()
    same("of w alone", vjp([pair.g(m)[0]], [m], [torch.ones(())]), [torch.eye(3) / 8])
    turned, _ = torch.linalg.qr(torch.randn(5, 3, 3))
    turned = (turned * torch.linalg.det(turned)[:, None, None]).requires_grad_()
    o = healthy(lambda: pair.g(turned), [turned], [turned])
    return f"identity: defective NaN, mended finite and w's slope right; other rotations: mended off by {o:.2g}"


def p09(pair: Pair) -> str:
    args = pair.args()
    o = healthy(lambda: pair.g(*args), args, args)
    (bad,) = vjp([pair.f(*args)], args, [torch.randn(2, 3, 3)])
    assert bad.isnan().all()
    away = torch.randn(2, 3, requires_grad=True)
    p = healthy(lambda: pair.g(away), [away], [away])
    return f"zero: defective NaN, mended off by {o:.2g}; elsewhere {p:.2g}"


def p12(pair: Pair) -> str:
    def plain(x: Tensor, scale: float, low: int, high: int) -> Tensor:
        """Straight through where the rounded value is within the range."""
        q = (x / scale).round()
        return x * ((q >= low) & (q <= high))

    return by_differences(pair, plain)


def p14(pair: Pair) -> str:
    args = pair.args()
    o = healthy(lambda: pair.g(*args), args, args)
    y = pair.f(*args)
    grads = vjp([y], args, [torch.randn_like(y)])
    assert y.isfinite().all()
    assert all(g.isnan().any() for g in grads)
    return f"a weight of zero: defective NaN, mended off by {o:.2g}"


def p15(pair: Pair) -> str:
    wide = [torch.randn(6, 4, requires_grad=True), torch.randn(4, requires_grad=True)]
    o = healthy(lambda: pair.g(*wide), wide, wide)
    args = pair.args()
    v = torch.rand(512, 4, dtype=torch.bfloat16)
    args[0].data.abs_()
    exact = vjp([pair.g(*(a.double() for a in args))], args, [v.double()])[1].double()
    found = []
    for f in (pair.f, pair.g):
        got = vjp([f(*args)], args, [v])[1].double()
        found.append(((got - exact).norm() / exact.norm()).item())
    assert found[0] > 8 * found[1], found
    return f"relative error in bfloat16: defective {found[0]:.2g}, mended {found[1]:.2g}; in float64 {o:.2g}"


def trained(module: nn.Module, x: Tensor) -> list[Tensor]:
    """The gradients of all parameters, of a weighted sum of the output."""
    y = module(x)
    v = torch.arange(y.numel(), dtype=y.dtype).view_as(y).cos()
    return vjp([y], list(module.parameters()), [v]) if all(p.requires_grad for p in module.parameters()) else []


def p18(pair: Pair) -> str:
    bad, good = pair.modules()
    (x,) = pair.args()
    o = healthy(lambda: good(x), list(good.parameters()), [x])
    names = [name for name, _ in bad.named_parameters()]
    got, right = trained(bad, x), trained(good, x)
    off = {n: far([a], [b]) > 1e-3 for n, a, b in zip(names, got, right, strict=True)}
    assert [n for n, wrong in off.items() if wrong] == ["phi.weight", "theta.weight"], off
    assert all((g == 0).all() for g in got[:2])
    return f"phi.weight and theta.weight: defective zero, mended off by {o:.2g}"


def p20(pair: Pair) -> str:
    bad, good = pair.modules()
    (x,) = pair.args()
    plain = pair.modules()[1]
    plain.load_state_dict(good.state_dict())
    plain.block(x)
    counts = []
    for module in (bad, good):
        module(x).sum().backward()
        counts.append(int(module.norm.num_batches_tracked))
    assert counts == [2, 1], counts
    same("running mean", [good.norm.running_mean], [plain.norm.running_mean])
    assert far([bad.norm.running_mean], [plain.norm.running_mean]) > 1e-3
    v = torch.randn(3, 2, 5)
    xs = [x, *good.parameters()]
    right = numeric(lambda: good(x), xs, [v])
    o = far(vjp([good(x)], xs, [v]), right)
    assert o < 1e-5
    return f"batches counted in a step: defective 2, mended 1; gradients of the mended one off by {o:.2g}"


def p23(pair: Pair) -> str:
    x, alpha = pair.args()
    o = healthy(lambda: pair.g(x, alpha), [x], [x])
    x, t = x.detach(), torch.tensor([3.0, -2.0, 5.0])
    found = [torch.func.jvp(lambda a, f=f: f(a, alpha), (x,), (t,))[1] for f in (pair.f, pair.g)]
    right = t * (x > 0)
    same("mended", found[1:], [right])
    assert far(found[:1], [right]) > 1e-3
    return f"jvp: defective off by {far(found[:1], [right]):.3g}, mended 0; backward of both {o:.2g}"


def p24(pair: Pair) -> str:
    x, eps = pair.args()
    o = healthy(lambda: pair.g(x, eps), [x], [x])
    bad, good = (torch.vmap(lambda row, f=f: f(row, eps))(x) for f in (pair.f, pair.g))
    same("values", [bad], [good], 0.0)
    assert not bad.requires_grad
    v = torch.randn(3, 4)
    same("under vmap", vjp([good], [x], [v]), [v * (1 - x.tanh() ** 2)])
    return f"under vmap: defective has no gradient, mended has the one of tanh ({o:.2g})"


def p26(pair: Pair) -> str:
    line = by_differences(pair, wrong=[0])
    args = pair.args()
    args[0] = args[0].detach().contiguous().requires_grad_()
    xs, v = leaves(args), torch.randn(2, 3)
    same("contiguous", vjp([pair.f(*args)], xs, [v]), vjp([pair.g(*args)], xs, [v]))
    return line + "; contiguous: both right"


def p27(pair: Pair) -> str:
    bad, good = pair.modules()
    (x,) = pair.args()
    o = healthy(lambda: good(x), [x], [x])
    same("a single call", vjp([bad(x)], [x], [torch.ones(3)]), [3 * x**2])
    other = torch.randn(3)
    found = []
    for module in (bad, good):
        y = module(x)
        module(other)
        found += vjp([y], [x], [torch.ones(3)])
    same("mended", found[1:], [3 * x**2])
    assert far(found[:1], found[1:]) > 1e-3
    return f"after a second call: defective off by {far(found[:1], found[1:]):.3g}, mended 0 ({o:.2g} alone)"


def p29(pair: Pair) -> str:
    found = []
    for module in pair.modules():
        torch.manual_seed(1)
        (x,) = pair.args()
        y = module(x)
        torch.manual_seed(1)
        (again,) = pair.args()
        plain = again + module.inner(again)
        same("values", [y], [plain], 0.0)
        v = torch.randn_like(y)
        xs = list(module.parameters())
        found.append(far(vjp([y], xs, [v]), vjp([plain], xs, [v])))
    assert found[0] > 1e-3
    assert found[1] < 1e-12
    return f"defective off by {found[0]:.3g}, mended by {found[1]:.2g} (of the same block without checkpointing)"


def p31(pair: Pair) -> str:
    bad, good = pair.modules()
    (x,) = pair.args()
    o = healthy(lambda: good(x), list(good.parameters()), [x])
    bad(x).sum().backward()
    assert bad.bias.grad is None
    assert not pair.bad(bias=False).bias.bool().any()
    return f"bias: defective no gradient, mended off by {o:.2g}"


def p32(pair: Pair) -> str:
    args = pair.args()
    torch.library.opcheck(pair.good, args)
    o = healthy(lambda: pair.g(*args), args, args)
    ys = list(pair.f(*args))
    vs = random_like(ys)
    right = vjp(list(pair.g(*args)), args, vs)
    same("contiguous cotangents", vjp(ys, args, vs, retain_graph=True), right)
    v = torch.cat(vs, 1)
    e = far(vjp([torch.cat(ys, 1)], args, [v]), right)
    assert e > 1e-3
    same("mended after cat", vjp([torch.cat(pair.g(*args), 1)], args, [v]), right)
    return f"after cat: defective off by {e:.3g}, mended by {o:.2g}; contiguous: both right"


def p33(pair: Pair) -> str:
    (x,) = pair.args()
    right = [2 * x.round()]
    found = []
    for f in (pair.f, pair.g):
        same("eager", [f(x)], right)
        torch._dynamo.reset()
        found.append(far([torch.compile(f, backend="eager")(x)], right))
    assert found[0] > 1e-3
    assert found[1] < 1e-12
    return f"compiled: defective off by {found[0]:.3g}, mended by {found[1]:.2g}; eager: both right"


PROOFS: dict[str, Callable[[Pair], str]] = {
    "11": lambda pair: by_differences(pair, wrong=[0, 1]),
    "13": lambda pair: by_differences(pair, wrong=[0]),
    "17": by_differences,
    "21": lambda pair: by_differences(pair, wrong=[0]),
    "28": lambda pair: by_differences(pair, wrong=[1]),
    **{name[1:]: f for name, f in globals().items() if name[0] == "p" and name[1:].isdigit()},
}


def _prove(title: str, proof: Callable[[], str], seed: int) -> bool:
    torch.manual_seed(seed)
    try:
        with default(torch.float64):
            print(title, proof(), flush=True)
    except Exception as error:
        print(title, f"NOT SHOWN {type(error).__name__}: {error}", flush=True)
        return False
    return True


def pairs(wanted: Sequence[str]) -> list[bool]:
    rows = tomllib.loads((HERE / "pairs.toml").read_text())["pair"]
    done = []
    for row in rows:
        number = row["folder"][:2]
        if not wanted or number in wanted:
            proof = PROOFS.get(number, by_differences)
            done.append(_prove(number, lambda row=row, proof=proof: proof(Pair(row)), int(number)))
    return done


# The sound functions.


def _rounded(x: Tensor) -> Tensor:
    return x + (x.round() - x).detach()


def _lsq(x: Tensor, step: Tensor, gain: float, low: int, high: int) -> Tensor:
    """With rounding straight through, and the gradient of the step scaled but not its value."""
    q = _rounded((x / step).clamp(low, high)) * step
    alone = _rounded((x.detach() / step).clamp(low, high)) * step
    return q + (gain - 1) * (alone - alone.detach())


def _quantized(x: Tensor, codebook: Tensor) -> Tensor:
    taken = codebook[torch.cdist(x, codebook).argmin(1)]
    return taken + x - x.detach()


def _clipped(f: Callable[..., Tensor], xs: list[Tensor], args: list[Any]) -> str:
    """No map has this gradient: the identity, whose gradient is shortened."""
    y, v = f(*args), torch.randn(3, 4)
    same("values", [y], xs, 0.0)
    for scale in (0.01, 10.0):
        g, old = scale * v, (scale * v).clone()
        right = g if g.norm() <= args[1] else g / g.norm() * args[1]
        same("gradient", vjp([y], xs, [g], retain_graph=True), [right])
        same("a strided cotangent", vjp([y], xs, [strided(g)], retain_graph=True), [right])
        same("what was handed in is changed", [g], [old], 0.0)
    return "shortened as it is meant to be"


def _auxiliary(f: Callable[..., Tensor], xs: list[Tensor], args: list[Any]) -> str:
    """The gradient of the second argument is a constant: that of a loss added at the end."""
    y, v = f(*args), torch.randn(3, 4)
    same("values", [y], xs[:1], 0.0)
    same("gradient", vjp([y], xs, [v]), [v, torch.full((1,), args[2])])
    return "as it is meant to be"


def _spiking(f: Callable[..., Tensor], xs: list[Tensor], args: list[Any]) -> str:
    """Of the same neurons, written with a sigmoid whose value is replaced by the step."""
    current, beta = xs
    v, out = torch.zeros(3), []
    for i in current:
        v = beta * v + i
        soft = (4 * (v - 1)).sigmoid()
        out.append(soft + ((v >= 1).double() - soft).detach())
        v = v - out[-1].detach()
    plain = torch.stack(out)
    same("values", [f(current)], [plain])
    w = torch.randn(5, 3)
    same("gradient", vjp([f(current)], xs, [w]), vjp([plain], xs, [w]))
    assert 0 < plain.sum() < plain.numel()
    return "as it is meant to be"


def _grid_sample(image: Tensor, points: Tensor) -> Tensor:
    """By torch, whose points are in [-1, 1] and have the column first."""
    last = torch.tensor([image.shape[1] - 1, image.shape[0] - 1])
    grid = 2 * points.flip(1) / last - 1
    return torch.nn.functional.grid_sample(image[None, None], grid[None, None], align_corners=True).flatten()


def _rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """By complex numbers."""
    turned = torch.complex(*x.chunk(2, -1)) * torch.complex(cos, sin)
    return torch.cat([turned.real, turned.imag], -1)


def _focal(logits: Tensor, target: Tensor, gamma: float, alpha: float) -> Tensor:
    p = logits.sigmoid()
    right = torch.where(target > 0, p, 1 - p)
    return -torch.where(target > 0, alpha, 1 - alpha) * (1 - right) ** gamma * right.log()


def _attention(q: Tensor, k: Tensor, v: Tensor, decay: float) -> Tensor:
    """As a product with the matrix of all decays."""
    t = torch.arange(float(len(q)))
    return (q @ k.mT * (decay ** (t[:, None] - t)).tril()) @ v


def _conv(x: Tensor, weight: Tensor, state: Tensor) -> Tensor:
    return torch.nn.functional.conv1d(torch.cat([state, x], 1), weight[:, None], groups=len(x))


#: What torch computes for the same arguments; for several outputs, the first one.
VALUES: dict[str, Callable[..., Tensor]] = {
    "RMSNorm": lambda x, w: torch.nn.functional.rms_norm(x, (4,), w, 1e-6),
    "LayerNorm": lambda x, w, b: torch.nn.functional.layer_norm(x, (5,), w, b),
    "GroupNorm": lambda x, w, b, groups: torch.nn.functional.group_norm(x, groups, w, b),
    "BatchNorm": lambda x: torch.nn.functional.batch_norm(x, None, None, training=True),
    "SwiGLU": lambda a, b: torch.nn.functional.silu(a) * b,
    "GeGLU": lambda a, b: torch.nn.functional.gelu(a, approximate="tanh") * b,
    "MemoryEfficientSwish": torch.nn.functional.silu,
    "MemoryEfficientMish": torch.nn.functional.mish,
    "CrossEntropy": lambda x, t, s: torch.nn.functional.cross_entropy(x, t, label_smoothing=s),
    "SigmoidFocalLoss": _focal,
    "LogSumExp": torch.logsumexp,
    "CosineSimilarity": torch.nn.functional.cosine_similarity,
    "ChamferDistance": lambda x, y: torch.cdist(x, y).square().amin(1),
    "RotaryEmbedding": _rotary,
    "BilinearSample": _grid_sample,
    "Embedding": lambda w, i: torch.nn.functional.embedding(i, w),
    "TopK": lambda x, k: x.topk(k).values,
    "MaxPool1d": torch.nn.functional.max_pool1d,
    "UnfoldConv2d": torch.nn.functional.conv2d,
    "CausalConv1d": _conv,
    "LinearAttention": _attention,
    "CholeskySolve": torch.linalg.solve,
    "ComplexModulus": torch.abs,
}


def _squared(f: Callable[..., Tensor], xs: list[Tensor], args: list[Any]) -> str:
    """Also under the transforms of torch.func, for which it is written."""
    error = healthy(lambda: f(*args), xs, args)
    x, t = xs[0].detach(), torch.randn(3, 4)
    right = 2 * x.clamp(min=0)
    same("jvp", [torch.func.jvp(f, (x,), (t,))[1]], [right * t])
    same("vmap of grad", [torch.func.vmap(torch.func.grad(lambda row: f(row).sum()))(x)], [right])
    return f"off by {error:.2g}; jvp and vmap right"


#: Proofs of their own.
SOUND: dict[str, Callable[..., str]] = {
    "AddAuxiliaryLoss": _auxiliary,
    "ClipGradientNorm": _clipped,
    "LeakyIntegrateAndFire": _spiking,
    "SquaredReLU": _squared,
}

#: The map whose derivative is the gradient that is meant.
PLAIN: dict[str, Callable[..., Any]] = {
    "GradientReversal": lambda x, strength: -strength * x,
    "ScaleGradient": lambda x, factor: factor * x,
    "RoundSTE": lambda x: x,
    "SignSTE": lambda x: x.clamp(-1, 1),
    "LSQ": _lsq,
    "PACT": lambda x, alpha, bits: torch.minimum(x.clamp(min=0), alpha),
    "GumbelOneHot": lambda logits, noise, tau: ((logits + noise) / tau).softmax(-1),
    "VectorQuantize": _quantized,
    "AtanSpike": lambda x, alpha: (torch.pi / 2 * alpha * x).atan() / torch.pi,
    "SigmoidSpike": lambda x, alpha: (alpha * x).sigmoid(),
    "TriangleSpike": lambda x, height: height * torch.where(x.abs() < 1, x - x * x.abs() / 2, 0.5 * x.sign()),
}


def sound_one(row: dict[str, Any], ops: ModuleType) -> str:
    thing, args = getattr(ops, row["name"]), called(row["call"])
    xs = leaves(args)
    if row["kind"] == "module":
        thing = thing(*called(row["construct"]))
        xs += list(thing.parameters())
    f = entry(thing)
    own = SOUND.get(row["name"])
    if own is not None:
        return own(f, xs, args)
    if row["name"] in VALUES:
        same("values", outs(f(*args))[:1], [VALUES[row["name"]](*args)])
    if row["kind"] == "operator":
        torch.library.opcheck(thing, args)
    plain = PLAIN.get(row["name"])
    assert (plain is not None) == row["meant"]
    return f"off by {healthy(lambda: f(*args), xs, args, plain and (lambda: plain(*args))):.2g}"


def sound(wanted: Sequence[str]) -> list[bool]:
    rows = tomllib.loads((HERE / "sound.toml").read_text())["sound"]
    ops = load(HERE / "sound.py")
    return [
        _prove(row["name"], lambda row=row: sound_one(row, ops), seed)
        for seed, row in enumerate(rows)
        if not wanted or row["name"] in wanted
    ]


if __name__ == "__main__":
    asked = sys.argv[1:]
    results = sound(asked[1:]) if asked[:1] == ["sound"] else pairs(asked)
    sys.exit(not results or not all(results))
