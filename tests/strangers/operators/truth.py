"""Prove in plain torch what table.py says of each subject, and write truth.json.

python tests/strangers/operators/truth.py
"""

import inspect
import json
import logging
import os
import sys
import warnings

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import diseased  # noqa: E402
import reports  # noqa: E402
import sound  # noqa: E402
import table  # noqa: E402

F64 = torch.float64
MODULES = {"sound": sound, "diseased": diseased, "reports": reports}
SOUND, BAD, REPORT = (getattr(torch.ops, m.NAMESPACE) for m in MODULES.values())
F = torch.nn.functional


# ------------------------------------------------------------------------ tools


def callable_of(subject):
    if subject["kind"] == "function":
        return getattr(MODULES[subject["module"]], subject["name"]).apply
    namespace, name = subject["name"].split("::")
    return getattr(getattr(torch.ops, namespace), name)


def names_of(subject):
    if subject["kind"] == "function":
        names = list(inspect.signature(getattr(MODULES[subject["module"]], subject["name"]).forward).parameters)
        return [n for n in names if n != "ctx"]
    return [a.name for a in callable_of(subject).default._schema.arguments]


def evaluate(call, seed=0):
    torch.manual_seed(seed)
    args, kwargs = (eval(part, {"torch": torch}) for part in call)
    torch.manual_seed(seed + 1)
    return list(args), dict(kwargs)


def tensors_in(value):
    return [t for t in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(t, torch.Tensor)]


def leaves_of(subject, args, kwargs):
    bound = {**dict(zip(names_of(subject), args)), **kwargs}
    found = [t for name in subject["gradients"] for t in tensors_in(bound.get(name))]
    return [t.requires_grad_() for t in found if t.is_floating_point()]


def float_outputs(value):
    return [t for t in tensors_in(value) if t.is_floating_point()]


def same(a, b, tolerance=1e-8):
    if a is None or b is None:
        return a is None and b is None
    if a.dtype in (torch.bfloat16, torch.float32):
        tolerance = {torch.bfloat16: 3e-2, torch.float32: 1e-4}[a.dtype]
    return a.shape == b.shape and torch.allclose(a.double(), b.double(), rtol=tolerance, atol=tolerance)


def all_same(first, second):
    return len(first) == len(second) and all(same(a, b) for a, b in zip(first, second))


def layouts(values):
    """Tensors with the values of the given one, laid out differently."""
    flat = torch.stack([values, torch.full_like(values, 7.0)], -1)
    yield "strided", flat[..., 0]
    if values.dim() > 1:
        yield "transposed", values.transpose(0, -1).contiguous().transpose(0, -1)


def pull(function, args, kwargs, leaves, cotangents):
    torch.manual_seed(5)
    outputs = [t for t in float_outputs(function(*args, **kwargs)) if t.requires_grad]
    if not outputs:
        return [None] * len(leaves)
    cotangents = [c.clone(memory_format=torch.preserve_format) if c.is_contiguous() else c for c in cotangents]
    return torch.autograd.grad(outputs, leaves, cotangents[: len(outputs)], allow_unused=True)


def cotangents_for(outputs, kind="random"):
    torch.manual_seed(11)
    made = [torch.randn(t.shape, dtype=F64).to(t.dtype) for t in outputs]
    if kind == "random":
        return made
    if kind == "expanded":
        return [torch.tensor(1.5, dtype=t.dtype).expand(t.shape) for t in outputs]
    return [dict(layouts(t)).get(kind, t) for t in made]


def zeros_for_none(grads, leaves):
    return [torch.zeros_like(x) if g is None else g for g, x in zip(grads, leaves)]


def derivative_of_reference(subject, call, kind):
    rule = getattr(table, subject["surrogate"] or subject["reference"])
    args, kwargs = evaluate(call)
    leaves = leaves_of(subject, args, kwargs)
    torch.manual_seed(5)
    value = rule(*args, **kwargs)
    outputs = [t for t in float_outputs(value[0] if subject["writes"] else value) if t.requires_grad]
    if not outputs:
        return [None] * len(leaves), []
    cotangents = cotangents_for(outputs, kind)
    return torch.autograd.grad(outputs, leaves, cotangents, allow_unused=True), cotangents


def quiet(check, *args):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return bool(check(*args))
    except Exception as error:
        return f"raises {type(error).__name__}"


# ----------------------------------------------------------- facts, subject by call


def fact_forward(subject, call):
    args, kwargs = evaluate(call)
    torch.manual_seed(5)
    before = {n: t for n, t in zip(names_of(subject), args)}
    result = callable_of(subject)(*args, **kwargs)
    again, more = evaluate(call)
    torch.manual_seed(5)
    expected = getattr(table, subject["reference"])(*again, **more)
    written = {}
    if subject["writes"]:
        expected, written = expected
    right = all(same(a, b) for a, b in zip(tensors_in(result), tensors_in(expected)))
    right &= len(tensors_in(result)) == len(tensors_in(expected))
    return right and all(same(before[n], value) for n, value in written.items())


def fact_writes(subject, call):
    args, kwargs = evaluate(call)
    kept, _ = evaluate(call)
    callable_of(subject)(*args, **kwargs)
    for name, now, then in zip(names_of(subject), args, kept):
        if name not in subject["writes"] and not all(torch.equal(a, b) for a, b in zip(tensors_in(now), tensors_in(then))):
            return False
    return True


def fact_gradient(subject, call, kind="random"):
    expected, cotangents = derivative_of_reference(subject, call, kind)
    args, kwargs = evaluate(call)
    leaves = leaves_of(subject, args, kwargs)
    got = pull(callable_of(subject), args, kwargs, leaves, cotangents)
    return all_same(zeros_for_none(got, leaves), zeros_for_none(expected, leaves))


def fact_cotangent_layouts(subject, call):
    return all(fact_gradient(subject, call, kind) for kind in ("expanded", "strided", "transposed"))


def fact_differences(subject, call):
    """Central differences of the forward, or of the surrogate, in float64."""
    rule = getattr(table, subject["surrogate"]) if subject["surrogate"] else callable_of(subject)
    args, kwargs = evaluate(call)
    leaves = leaves_of(subject, args, kwargs)
    if not leaves or any(x.dtype != F64 for x in leaves):
        return True
    probe = float_outputs(rule(*args, **kwargs))
    cotangents = cotangents_for([t for t in probe if t.requires_grad])
    got = zeros_for_none(pull(callable_of(subject), args, kwargs, leaves, cotangents), leaves)
    step, ok = 1e-6, True
    for i, leaf in enumerate(leaves):
        direction = torch.randn(leaf.shape, dtype=F64)
        values = []
        for sign in (1, -1):
            moved, more = evaluate(call)
            target = leaves_of(subject, moved, more)[i]
            with torch.no_grad():
                target.add_(sign * step * direction)
                outputs = float_outputs(rule(*moved, **more))
            values.append(sum((c * o).sum() for c, o in zip(cotangents, outputs)))
        slope = (values[0] - values[1]) / (2 * step)
        ok &= bool(torch.isclose((got[i] * direction).sum(), slope, rtol=1e-5, atol=1e-6))
    return ok


def fact_argument_layouts(subject, call):
    function, names = callable_of(subject), names_of(subject)
    args, kwargs = evaluate(call)
    torch.manual_seed(5)
    plain = tensors_in(function(*args, **kwargs))
    for kind in ("strided", "transposed"):
        again, more = evaluate(call)
        for i, value in enumerate(again):
            if isinstance(value, torch.Tensor) and value.is_floating_point() and names[i] not in subject["writes"]:
                again[i] = dict(layouts(value)).get(kind, value)
        torch.manual_seed(5)
        if not all_same(plain, tensors_in(function(*again, **more))):
            return False
    return True


def fact_compiled(subject, call):
    function = callable_of(subject)
    torch._dynamo.reset()
    compiled = torch.compile(lambda *a, **k: function(*a, **k), backend="aot_eager", fullgraph=True)
    results = []
    for rule in (function, compiled):
        args, kwargs = evaluate(call)
        leaves = leaves_of(subject, args, kwargs)
        torch.manual_seed(5)
        outputs = tensors_in(rule(*args, **kwargs))
        values = [t.detach().clone() for t in outputs] + [t.detach().clone() for a in args for t in tensors_in(a)]
        outputs = [t for t in outputs if t.requires_grad]
        grads = [None] * len(leaves)
        if outputs and leaves:
            grads = torch.autograd.grad(outputs, leaves, cotangents_for(outputs), allow_unused=True)
        results.append((values, zeros_for_none(grads, leaves), [t.stride() for t in outputs]))
    (v, g, s), (cv, cg, cs) = results
    return all_same(v, cv) and all_same(g, cg) and s == cs


def fact_second_order(subject, call):
    results = []
    rules = callable_of(subject), getattr(table, subject["surrogate"] or subject["reference"])
    for rule in rules:
        args, kwargs = evaluate(call)
        leaves = leaves_of(subject, args, kwargs)
        if not leaves or any(x.dtype != F64 for x in leaves):
            return True
        torch.manual_seed(5)
        value = rule(*args, **kwargs)
        value = value[0] if subject["writes"] and rule is rules[1] else value
        outputs = [t for t in float_outputs(value) if t.requires_grad]
        grads = torch.autograd.grad(outputs, leaves, cotangents_for(outputs), create_graph=True, allow_unused=True)
        weights = cotangents_for(leaves)
        loss = sum((w * g).sum() for w, g in zip(weights, grads) if g is not None) + sum((0 * x).sum() for x in leaves)
        results.append(zeros_for_none(torch.autograd.grad(loss, leaves, allow_unused=True), leaves))
    return all_same(*results)


def fact_inference(subject, call):
    with torch.inference_mode():
        return fact_forward(subject, call)


class Wrapped(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def fact_exported(subject, call):
    if call is not subject["calls"][0]:
        return True
    function = callable_of(subject)
    args, kwargs = evaluate(call)
    exported = torch.export.export(Wrapped(function), tuple(args), kwargs, strict=False)
    for program in (exported, exported.run_decompositions()):
        results = []
        for rule in (function, program.module()):
            args, kwargs = evaluate(call)
            leaves = leaves_of(subject, args, kwargs)
            torch.manual_seed(5)
            outputs = tensors_in(rule(*args, **kwargs))
            values = [t.detach().clone() for t in outputs] + [t.detach().clone() for a in args for t in tensors_in(a)]
            grads = [None] * len(leaves)
            outputs = [t for t in outputs if t.requires_grad]
            if outputs and leaves:
                grads = torch.autograd.grad(outputs, leaves, cotangents_for(outputs), allow_unused=True)
            results.append((values, zeros_for_none(grads, leaves)))
        if not all(all_same(a, b) for a, b in zip(*results)):
            return False
    return True


FACTS = {
    "forward": fact_forward,
    "writes": fact_writes,
    "gradient": fact_gradient,
    "differences": fact_differences,
    "cotangent layouts": fact_cotangent_layouts,
    "argument layouts": fact_argument_layouts,
    "compiled": fact_compiled,
    "second order": fact_second_order,
    "inference mode": fact_inference,
    "exported": fact_exported,
}


def facts(subject):
    found = {}
    for name, check in FACTS.items():
        answers = [quiet(check, subject, call) for call in subject["calls"]]
        found[name] = True if all(a is True for a in answers) else next(a for a in answers if a is not True)
    return found


def vmap_agrees(op, x, y, in_dims, **rest):
    size = next(t.shape[d] for t, d in zip((x, y), in_dims) if d is not None)
    loop = [op(*[t if d is None else t.select(d, i) for t, d in zip((x, y), in_dims)], *rest.values()) for i in range(size)]
    return same(torch.func.vmap(lambda a, b: op(a, b, *rest.values()), in_dims)(x, y), torch.stack(loop))


def sound_vmap(name):
    torch.manual_seed(0)
    x, y = torch.randn(3, 3, 3, dtype=F64), torch.randn(3, 3, 3, dtype=F64)
    if name == "strangers_sound::scale":
        return all(
            same(torch.func.vmap(lambda a: SOUND.scale(a, 2.0), d)(x), torch.stack([2 * x.select(d, i) for i in range(3)]))
            for d in (0, 1, 2)
        )
    if name == "strangers_sound::mix":
        dims = [(0, 0), (0, 1), (2, 0), (1, 2)]
        return all(vmap_agrees(SOUND.mix, x, y, d, alpha=1.5) for d in dims) and vmap_agrees(
            SOUND.mix, x, y[0], (0, None), alpha=1.5
        )
    return None


def sound_project_autocast():
    x, w = torch.randn(4, 3), torch.randn(3, 2)
    with torch.autocast("cpu", torch.bfloat16):
        y = SOUND.project(x, w)
        return y.dtype == torch.bfloat16 and torch.allclose(y.float(), (x @ w).float(), atol=5e-2, rtol=5e-2)


def sound_format():
    x = torch.randn(2, 3, 4, 5)
    last = SOUND.swish(x.to(memory_format=torch.channels_last))
    return last.is_contiguous(memory_format=torch.channels_last) and SOUND.swish(x).is_contiguous()


# ---------------------------------------------------------------------- opcheck


def opcheck(subject):
    if subject["kind"] == "function":
        return None
    merged = {}
    for call in subject["calls"]:
        args, kwargs = evaluate(call)
        leaves_of(subject, args, kwargs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answers = torch.library.opcheck(callable_of(subject).default, tuple(args), kwargs, raise_exception=False)
        for test, answer in answers.items():
            text = "SUCCESS" if answer == "SUCCESS" else f"{type(answer).__name__}: {' '.join(str(answer).split())[:160]}"
            if merged.get(test, "SUCCESS") == "SUCCESS":
                merged[test] = text
    return merged


# ------------------------------------------------------------------ the defects

SHOWN = {}


def shows(name):
    def keep(check):
        SHOWN[name] = check
        return check

    return keep


def rand(*shape, grad=True, dtype=F64):
    return torch.randn(*shape, dtype=dtype).requires_grad_(grad)


def grad_of(y, x, v=None):
    return torch.autograd.grad(y, x, torch.ones_like(y) if v is None else v, allow_unused=True)


def number(value):
    return f"{float(value):.3g}"


def fake(op, *args):
    with FakeTensorMode() as mode:
        return op(*[mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in args])


@shows("strangers_diseased::sine")
def _():
    x = rand(4, 3)
    ratio = grad_of(BAD.sine(x), x)[0] / torch.cos(x)
    return torch.allclose(ratio, torch.full_like(x, 1.7)), f"gradient / cos(x) is {number(ratio.mean())} at every element"


def layout_story(op, x, true, *rest, right=("contiguous",)):
    v = torch.randn(x.shape if not rest else x.shape[:1], dtype=F64)
    errors = {"contiguous": (grad_of(op(x, *rest), x, v)[0] - true(v)).abs().max()}
    errors["expanded"] = (grad_of(op(x, *rest), x, torch.ones((), dtype=F64).expand(v.shape))[0] - true(torch.ones_like(v))).abs().max()
    for kind, w in layouts(v):
        errors[kind] = (grad_of(op(x, *rest), x, w)[0] - true(v)).abs().max()
    good = all(e < 1e-12 if k in right else e > 1e-3 for k, e in errors.items())
    return bool(good), "largest error of the gradient: " + ", ".join(f"{k} {number(e)}" for k, e in errors.items())


@shows("strangers_diseased::exponent")
def _():
    x = rand(4, 3)
    return layout_story(BAD.exponent, x, lambda v: v * torch.exp(x))


def first_argument_layout(op, values, rest, true):
    errors = {"contiguous": (op(values, *rest) - true).abs().max()}
    for kind, w in layouts(values):
        errors[kind] = (op(w, *rest) - true).abs().max()
    good = errors["contiguous"] < 1e-12 and all(e > 1e-3 for k, e in errors.items() if k != "contiguous")
    return bool(good), "largest error of the result: " + ", ".join(f"{k} {number(e)}" for k, e in errors.items())


@shows("strangers_diseased::exponent_backward")
def _():
    g, y = rand(4, 3, grad=False), rand(4, 3, grad=False)
    return first_argument_layout(BAD.exponent_backward, g, (y,), g * y)


@shows("strangers_diseased::arctangent")
def _():
    x = rand(4, 3)
    return layout_story(BAD.arctangent, x, lambda v: v / (1 + x**2), right=("contiguous", "expanded"))


@shows("strangers_diseased::arctangent_backward")
def _():
    g, x = rand(4, 3, grad=False), rand(4, 3, grad=False)
    return first_argument_layout(BAD.arctangent_backward, g, (x,), g / (1 + x**2))


@shows("strangers_diseased::dense")
def _():
    x, w, b = rand(4, 3), rand(3, 2), rand(2)
    gx, gw, gb = grad_of(BAD.dense(x, w, b), (x, w, b))
    ex, ew, _ = grad_of(x @ w + b, (x, w, b))
    return gb is None and same(gx, ex) and same(gw, ew), f"gradient of bias is {gb}, of x and weight right"


@shows("strangers_diseased::divide")
def _():
    a, b = rand(4, 3), rand(4, 3)
    got, right = grad_of(BAD.divide(a, b), (a, b)), grad_of(a / b, (a, b))
    return same(got[0], right[1]) and same(got[1], right[0]), "gradient of a equals that of b and the other way round"


@shows("strangers_diseased::gated")
def _():
    x, w = rand(4, 3), rand(4, 3)
    both = grad_of(BAD.gated(x, w), x)[0]
    alone = grad_of(BAD.gated(x, w.detach()), x)[0]
    return same(both, w.detach()) and same(alone, torch.ones_like(x)), "gradient of x is w with w.requires_grad, 1 without"


class CountProducts(torch.utils._python_dispatch.TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func is torch.ops.aten.mm.default
        return func(*args, **(kwargs or {}))


@shows("strangers_diseased::matmul")
def _():
    counts = {}
    for name, op in (("matmul", BAD.matmul), ("sound project", SOUND.project)):
        y = op(rand(4, 3), rand(3, 2, grad=False))
        with CountProducts() as mode:
            y.sum().backward()
        counts[name] = mode.count
    return counts == {"matmul": 2, "sound project": 1}, f"matrix products in the backward by x alone: {counts}"


@shows("strangers_diseased::blend")
def _():
    tensors = [rand(4) for _ in range(3)]
    got = [g.mean().item() for g in grad_of(BAD.blend(tensors, [1.0, 2.0, 3.0]), tensors)]
    return got == [3.0, 2.0, 1.0], f"weights 1, 2, 3 give the gradients {got}"


@shows("strangers_diseased::polar")
def _():
    x = rand(4)
    first, second = grad_of(BAD.polar(x)[0], x)[0], grad_of(BAD.polar(x)[1], x)[0]
    return same(first, torch.cos(x)) and not second.any(), f"gradient of the second output {second.tolist()}, of the first right"


@shows("strangers_diseased::log_cosh")
def _():
    x64, x32 = torch.tensor([1.0, 720.0], dtype=F64, requires_grad=True), torch.tensor([1.0, 100.0], requires_grad=True)
    x16 = torch.tensor([1.0, 20.0], dtype=torch.float16, requires_grad=True)
    xb = torch.tensor([1.0, 100.0], dtype=torch.bfloat16, requires_grad=True)
    got = [grad_of(BAD.log_cosh(x), x)[0] for x in (x64, x32, x16, xb)]
    good = all(g[1].isnan() and g[0].isfinite() for g in got) and BAD.log_cosh(x64)[1].isfinite()
    return bool(good), f"gradients {[g.tolist() for g in got]}, the forward finite"


@shows("strangers_diseased::gain")
def _():
    x, w = (torch.rand(2048, 3) + 0.5).to(torch.bfloat16), torch.ones(3, dtype=torch.bfloat16, requires_grad=True)
    got = grad_of(BAD.gain(x, w), w)[0].double()
    built_in = grad_of(x * w, w)[0].double()
    true = x.double().sum(0)
    off, usual = ((got - true) / true).abs().max(), ((built_in - true) / true).abs().max()
    return bool(off > 0.2 and usual < 0.01), f"relative error of the weight gradient {number(off)}, of torch's own {number(usual)}"


@shows("strangers_diseased::squared_error")
def _():
    x, t = rand(4, 3), rand(4, 3, grad=False)
    ratio = grad_of(BAD.squared_error(x, t), x)[0] / grad_of(F.mse_loss(x, t), x)[0]
    total = same(grad_of(BAD.squared_error(x, t, "sum"), x)[0], grad_of(F.mse_loss(x, t, reduction="sum"), x)[0])
    return torch.allclose(ratio, torch.full_like(ratio, 12.0)) and total, f"mean: {number(ratio.mean())} times too large for 12 entries, sum right"


@shows("strangers_diseased::cube")
def _():
    x = rand(4)
    (g,) = torch.autograd.grad(BAD.cube(x).sum(), x, create_graph=True)
    penalty = (g**2).sum() + (x * 0).sum()
    (second,) = torch.autograd.grad(penalty, x)
    return same(g, 3 * x**2) and not second.any(), f"gradient right; gradient of its squared norm {second.tolist()}"


@shows("strangers_diseased::row_scale")
def _():
    x, scale = rand(4, 3), rand(4, grad=False)
    y = BAD.row_scale(x, scale)
    right = scale.clone().unsqueeze(-1).expand(4, 3)
    scale.mul_(2)
    got = grad_of(y, x)[0]
    y, raised = x * scale.unsqueeze(-1), False
    scale.mul_(2)
    try:
        grad_of(y, x)
    except RuntimeError:
        raised = True
    return same(got, 2 * right) and raised, "after scale.mul_(2) the gradient is doubled; torch's own product raises"


@shows("strangers_diseased::silu")
def _():
    x, z = rand(4, 3), rand(4, 3)
    once = grad_of(BAD.silu(x), x)[0]
    y = BAD.silu(x)
    BAD.silu(z)
    twice = grad_of(y, x)[0]
    return same(once, grad_of(F.silu(x), x)[0]) and not same(once, twice), f"a second call moves the gradient of the first by {number((once - twice).abs().max())}"


@shows("strangers_diseased::negate")
def _():
    x, v = rand(4), rand(4, grad=False)
    kept = v.clone()
    got = grad_of(BAD.negate(x), x, v)[0]
    return same(v, -kept) and same(got, -kept), "the cotangent has changed sign after the backward"


@shows("strangers_diseased::negate_backward")
def _():
    v = rand(4, grad=False)
    kept = v.clone()
    BAD.negate_backward(v)
    return same(v, -kept) and "!" not in str(BAD.negate_backward.default._schema), "the argument has changed sign; the schema declares no write"


@shows("strangers_diseased::dropout")
def _():
    x = torch.ones(1000, dtype=F64, requires_grad=True)
    y = BAD.dropout(x, 0.5)
    lost = ((grad_of(y, x)[0] != 0) & (y == 0)).sum()
    return lost > 100, f"{int(lost)} of 1000 entries were dropped and get a gradient"


@shows("strangers_diseased::linear")
def _():
    x, w = rand(4, 3), rand(3, 2)
    kept = w.detach().clone()
    BAD.linear(x, w)
    change = w.detach() - kept
    x32, w32 = torch.ones(4, 3), torch.ones(3, 2)
    BAD.linear(x32, w32)
    return torch.allclose(change, torch.full_like(w, 1e-9), rtol=1e-4), f"weight moved by {number(change.max())} in float64, by {number((w32 - 1).abs().max())} in float32 at 1.0"


@shows("strangers_diseased::track")
def _():
    average = torch.zeros(3, dtype=F64)
    BAD.track(rand(4, 3, grad=False), average, 0.1)
    return not average.any(), f"average {average.tolist()}, version {average._version} after the call"


def alias(op, *args):
    x = args[0]
    y = op(*args)
    shared = y.data_ptr() == x.data_ptr()
    version = x._version
    y.fill_(9)
    return bool(shared and (x == 9).any()), f"shares memory; a fill of the result writes x (version {version} to {x._version}); schema {op.default._schema}"


@shows("strangers_diseased::relu6")
def _():
    return alias(BAD.relu6, rand(4, grad=False), False)


@shows("strangers_diseased::head")
def _():
    return alias(BAD.head, rand(4, 2, grad=False), 2)


@shows("strangers_diseased::scale")
def _():
    x = torch.ones(1, dtype=F64)
    diseased._CALLS = 0
    values = [BAD.scale(x, 1.0).item() for _ in range(3)]
    return values[0] != values[1], f"three calls give {values}"


def fake_story(op, *args, attribute="stride"):
    def read(t):
        return tuple(t.stride()) if attribute == "stride" else tuple(t.shape) if attribute == "shape" else t.dtype

    pretended, real = read(fake(op, *args)), read(op(*args))
    return pretended, real


@shows("strangers_diseased::columns")
def _():
    a, b = fake_story(BAD.columns, rand(4, 3, grad=False))
    return a != b, f"stride {a} fake, {b} real"


@shows("strangers_diseased::row_sum")
def _():
    a, b = fake_story(BAD.row_sum, torch.randn(4, 3), attribute="dtype")
    return a != b, f"dtype {a} fake, {b} real"


@shows("strangers_diseased::block_sum")
def _():
    a, b = fake_story(BAD.block_sum, torch.randn(0), 3, attribute="shape")
    c, d = fake_story(BAD.block_sum, torch.randn(7), 3, attribute="shape")
    return a != b and c == d, f"empty: shape {a} fake, {b} real; seven entries: {c} fake, {d} real"


@shows("strangers_diseased::reverse")
def _():
    torch._dynamo.reset()
    x = torch.randn(5, 3)
    torch._dynamo.mark_dynamic(x, 0)
    raised = ""
    try:
        torch.compile(BAD.reverse, backend="eager", fullgraph=True)(x)
    except Exception as error:
        raised = type(error).__name__
    torch._dynamo.reset()
    y = torch.randn(5, 3)
    torch._dynamo.mark_dynamic(y, 0)
    fine = torch.compile(lambda t: SOUND.tile(t, 2), backend="eager", fullgraph=True)(y).shape[0] == 10
    return bool(raised) and fine, f"a dimension marked dynamic raises {raised}; strangers_sound::tile takes it"


@shows("strangers_diseased::pad_rows")
def _():
    a, b = fake_story(BAD.pad_rows, torch.randn(11, 3), attribute="shape")
    c, d = fake_story(BAD.pad_rows, torch.randn(5, 3), attribute="shape")
    return a != b and c == d, f"eleven rows: shape {a} fake, {b} real; five rows: {c} fake, {d} real"


@shows("strangers_diseased::scale_by")
def _():
    try:
        fake(BAD.scale_by, torch.randn(4), torch.tensor(2.0))
    except Exception as error:
        return type(error).__name__ == "DataDependentOutputException", f"under FakeTensorMode raises {type(error).__name__}"
    return False, "does not raise"


@shows("strangers_diseased::clip")
def _():
    a, b = fake_story(BAD.clip, torch.randn(3, 4).t(), 0.5)
    c, d = fake_story(BAD.clip, torch.randn(4, 3), 0.5)
    return a != b and c == d, f"transposed: stride {a} fake, {b} real; contiguous: {c} fake, {d} real"


@shows("strangers_diseased::softsign")
def _():
    x = rand(4)
    y = BAD.softsign(x)
    got = grad_of(y.sum() + x.sum(), x)[0]
    return not y.requires_grad and same(got, torch.ones_like(x)), f"requires_grad {y.requires_grad}; gradient of softsign(x) + x is {got.tolist()}"


def no_gradient(op):
    x = rand(4)
    y = op(x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y.sum().backward()
    return y.requires_grad and x.grad is None, f"requires_grad {y.requires_grad}, x.grad {x.grad}, {len(caught)} warning(s)"


@shows("strangers_diseased::softplus")
def _():
    return no_gradient(BAD.softplus)


@shows("strangers_diseased::tangent")
def _():
    x = rand(4)
    g = grad_of(BAD.tangent(x), x)[0]
    return not g.any(), f"gradient {g.tolist()}"


@shows("strangers_diseased::mish")
def _():
    has = {k: torch._C._dispatch_has_kernel_for_dispatch_key("strangers_diseased::mish", k) for k in ("CPU", "AutogradCPU", "AutogradCUDA")}
    shown, how = no_gradient(BAD.mish)
    return shown and not has["AutogradCPU"], f"{how}; kernels {has}"


@shows("strangers_diseased::quadratic")
def _():
    with torch.no_grad():
        fine = same(BAD.quadratic(torch.ones(2)), torch.full((2,), 2.0))
    try:
        with torch.inference_mode():
            BAD.quadratic(torch.ones(2))
    except NotImplementedError:
        return fine, "right under no_grad, NotImplementedError under inference_mode"
    return False, "does not raise"


class Binarize(torch.nn.Module):
    def forward(self, x):
        return BAD.binarize(x)


@shows("strangers_diseased::binarize")
def _():
    x = rand(4)
    exported = torch.export.export(Binarize(), (torch.randn(4, dtype=F64),), strict=False)
    kept = grad_of(exported.module()(x), x)[0]
    lost = grad_of(exported.run_decompositions().module()(x), x)[0]
    return same(kept, torch.ones_like(x)) and not lost.any(), f"gradient exported {kept.tolist()}, exported and decomposed {lost.tolist()}"


@shows("strangers_diseased::row_mix")
def _():
    x, y = rand(3, 3, grad=False), rand(3, 3, grad=False)
    answers = {str(d): vmap_agrees(BAD.row_mix, x, y, d) for d in ((0, 0), (0, 1), (1, 0))}
    answers["(0, None)"] = vmap_agrees(BAD.row_mix, x, y[0], (0, None))
    answers["(1, None)"] = vmap_agrees(BAD.row_mix, x, y[0], (1, None))
    return answers["(0, 0)"] and not answers["(0, 1)"] and not answers["(1, None)"], f"vmap equals the loop: {answers}"


@shows("strangers_diseased::channel_bias")
def _():
    x, b = rand(2, 3, 4, 5, grad=False), rand(3, grad=False)
    true = x + b[:, None, None]
    plain = (BAD.channel_bias(x, b) - true).abs().max()
    last = (BAD.channel_bias(x.to(memory_format=torch.channels_last), b) - true).abs().max()
    cut = (BAD.channel_bias(torch.cat([x, x], 3)[..., :5], b) - true).abs().max()
    return bool(plain == 0 and cut == 0 and last > 0.1), f"largest error contiguous {number(plain)}, sliced {number(cut)}, channels-last {number(last)}"


@shows("strangers_diseased::position_code")
def _():
    p, f = torch.tensor([1000.0, 1001.0]), torch.tensor([1.0])
    true = BAD.position_code(p, f).flatten()
    with torch.autocast("cpu", torch.bfloat16):
        got = BAD.position_code(p, f).flatten().float()
    return bool(got[0] == got[1] and (got - true).abs().max() > 0.05), f"codes of 1000 and 1001: {true.tolist()} without autocast, {got.tolist()} with"


@shows("strangers_diseased::affine")
def _():
    x, w = rand(4, 3), rand(3, grad=False)
    with_weight = same(grad_of(BAD.affine(x, w), x)[0], (2 * w).expand(4, 3))
    g = grad_of(BAD.affine(x, gain=3.0), x)[0]
    return with_weight and same(g, torch.ones_like(x)), f"gain 3 without a weight: gradient {number(g.mean())}; right with a weight"


@shows("strangers_reports::fused_gelu_backward")
def _():
    g, x = rand(4, 3, grad=False), rand(4, 3, grad=False)
    return first_argument_layout(REPORT.fused_gelu_backward, g, (x,), table.ref_quick_gelu_backward(g, x))


@shows("strangers_reports::fused_gelu")
def _():
    x, v = rand(4, 3), torch.randn(4, 6, dtype=F64)
    got = grad_of(torch.cat([REPORT.fused_gelu(x), x.detach()], 1), x, v)[0]
    true = grad_of(table.ref_quick_gelu(x), x, v[:, :3])[0]
    fine = same(grad_of(REPORT.fused_gelu(x), x, v[:, :3].contiguous())[0], true)
    return fine and not same(got, true), f"through torch.cat the gradient is off by {number((got - true).abs().max())}, right without"


@shows("RoundThrough")
def _():
    def loss(x):
        return reports.RoundThrough.apply(x).sum()

    torch._dynamo.reset()
    x = torch.randn(4)
    eager, compiled = torch.func.grad(loss)(x), torch.compile(torch.func.grad(loss), backend="aot_eager")(x)
    return bool(eager.all()) and not compiled.any(), f"func.grad {eager.tolist()}, compiled {compiled.tolist()}"


@shows("DoubledSquare")
def _():
    x = rand(4)
    (g,) = torch.autograd.grad(reports.DoubledSquare.apply(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(g.sum() + (0 * x).sum(), x) if g.requires_grad else (torch.zeros_like(x),)
    return same(g, 8 * x) and not second.any(), f"first derivative right, second {second.tolist()} where 8 is right"


@shows("OffloadedLogSoftmax")
def _():
    h, w, v = rand(4, 3), rand(3, 5), torch.randn(4, 5, dtype=F64)
    reports.OffloadedLogSoftmax.apply(h, w).backward(v)
    eh, ew = grad_of(torch.log_softmax(h @ w, -1), (h, w), v)
    return same(h.grad, eh) and same(w.grad, 2 * ew), f"weight.grad is {number((w.grad / ew).mean())} times the true one, hidden.grad right"


@shows("strangers_reports::token_loss")
def _():
    h, w, t, v = rand(4, 3), rand(3, 5), torch.tensor([0, 1, 2, 3]), torch.randn(4, dtype=F64)
    ones = same(grad_of(REPORT.token_loss(h, w, t)[0], w)[0], grad_of(table.ref_token_loss(h, w, t)[0], w)[0])
    got, true = grad_of(REPORT.token_loss(h, w, t)[0], w, v)[0], grad_of(table.ref_token_loss(h, w, t)[0], w, v)[0]
    first = same(got, v[0] * grad_of(table.ref_token_loss(h, w, t)[0], w)[0])
    return ones and first and not same(got, true), "right for a cotangent of ones; else the sum times the first entry"


@shows("InPlaceCrossEntropy")
def _():
    t, logits = torch.tensor([0, 1, 2, 0]), rand(4, 3, grad=False)
    kept, version = logits.clone(), logits._version
    reports.InPlaceCrossEntropy.apply(logits, t)
    x = rand(4, 3)
    got = grad_of(reports.InPlaceCrossEntropy.apply(torch.softmax(x, -1), t), x)[0]
    true = grad_of(F.cross_entropy(torch.softmax(x, -1), t), x)[0]
    good = not same(logits, kept) and logits._version == version and not same(got, true)
    return good, f"logits changed, version {version} to {logits._version}; behind a softmax the gradient is off by {number((got - true).abs().max())}"


@shows("MaskedSoftmax")
def _():
    x, v = rand(4, 3), torch.randn(4, 3, dtype=F64)
    kept = v.clone()
    got = grad_of(reports.MaskedSoftmax.apply(x), x, v)[0]
    return not same(v, kept) and same(v, got), "the cotangent holds the gradient after the backward"


@shows("strangers_reports::wide_softmax")
def _():
    x = torch.randn(2, 4096)
    y = REPORT.wide_softmax(x)
    accepted = torch.allclose(y, torch.softmax(x, -1), atol=1e-2, rtol=1e-2)
    return accepted and not y.any(), f"allclose with atol 1e-2: {accepted}; row sums {y.sum(-1).tolist()}"


@shows("ChunkedLoss")
def _():
    h, w, t = rand(6, 3), rand(3, 5), torch.tensor([0, 1, 2, 3, 4, 0])
    one = grad_of(reports.ChunkedLoss.apply(h, w, t, 2), (h, w))
    eight = grad_of(8 * reports.ChunkedLoss.apply(h, w, t, 2), (h, w))
    return all_same(one, eight) and all_same(one, grad_of(F.cross_entropy(h @ w, t), (h, w))), "gradient of 8 times the loss equals that of the loss"


@shows("strangers_reports::z_loss")
def _():
    x, t = rand(6, 5, grad=False), torch.tensor([0, 1, 2, 3, 4, 0])
    excess = REPORT.z_loss(x, t) - F.cross_entropy(x, t)
    fine = same(REPORT.z_loss(x, t, 0.01), table.ref_z_loss(x, t, 0.01))
    return fine and same(excess, 1e-4 * torch.logsumexp(x, -1).pow(2).mean()), f"excess {number(excess)} with the term off; right with 0.01"


@shows("strangers_reports::token_logprob_backward")
def _():
    g, x, t = rand(4, grad=False), rand(4, 3, grad=False), torch.tensor([0, 1, 2, 0])
    return first_argument_layout(REPORT.token_logprob_backward, g, (x, t), table.ref_token_logprob_backward(g, x, t))


@shows("strangers_reports::token_logprob")
def _():
    x, t = rand(4, 3), torch.tensor([0, 1, 2, 0])
    return layout_story(REPORT.token_logprob, x, lambda v: table.ref_token_logprob_backward(v, x, t), t)


@shows("strangers_reports::rms_norm")
def _():
    x, w = torch.randn(2048, 4).abs().to(torch.bfloat16), torch.ones(4, dtype=torch.bfloat16, requires_grad=True)
    got, true = grad_of(REPORT.rms_norm(x, w), w)[0].double(), grad_of(table.ref_rms_norm(x, w), w)[0].double()
    off = ((got - true) / true).abs().max()
    return bool(off > 0.2), f"relative error of the weight gradient {number(off)} over 2048 rows"


@shows("strangers_reports::expert")
def _():
    a, b = fake_story(REPORT.expert, torch.randn(4, 3), torch.randn(3, 8), 5, attribute="shape")
    return a != b, f"shape {a} fake, {b} real"


@shows("strangers_reports::grad_weight")
def _():
    a, b = fake_story(REPORT.grad_weight, torch.randn(4, 3), torch.randn(4, 5))
    return a != b, f"stride {a} fake, {b} real"


@shows("strangers_reports::shift_sine")
def _():
    x, y = rand(4, grad=False), rand(4, grad=False)
    kept = torch.sin(x), torch.sin(y)
    REPORT.shift_sine(x, y)
    return all_same((x, y), kept) and "!" not in str(REPORT.shift_sine.default._schema), "x and y hold their sines; the schema declares no write"


@shows("ScaledLoss")
def _():
    x, t, v = rand(4), rand(4, grad=False), torch.randn(4, dtype=F64)
    fine = same(grad_of(reports.ScaledLoss.apply(x, t), x)[0], 2 * (x - t))
    got = grad_of(reports.ScaledLoss.apply(x, t), x, v)[0]
    return fine and same(got, 2 * (x - t) * v.mean(), 1e-6) and not same(got, 2 * (x - t) * v), "right for ones; else scaled by the mean of the cotangent"


@shows("SquareByHand")
def _():
    def push(x):
        return torch.func.jvp(reports.SquareByHand.apply, (x,), (torch.ones_like(x),))[1]

    torch._dynamo.reset()
    x = torch.tensor([1.0, 2.0])
    eager, compiled = push(x), torch.compile(push, backend="aot_eager")(x)
    return same(eager, 20 * x) and same(compiled, 2 * x), f"jvp {eager.tolist()}, compiled {compiled.tolist()}"


@shows("strangers_reports::swish_pair_backward")
def _():
    g, h, x = rand(4, 3, grad=False), rand(4, 3, grad=False), rand(4, 3, grad=False)
    return first_argument_layout(REPORT.swish_pair_backward, g, (h, x), table.ref_swish_pair_backward(g, h, x))


@shows("strangers_reports::swish_pair")
def _():
    x, v = rand(4, 3), torch.randn(4, 6, dtype=F64)
    true = grad_of(torch.cat(table.ref_swish_pair(x), 1), x, v)[0]
    got = grad_of(torch.cat(REPORT.swish_pair(x), 1), x, v)[0]
    plain = torch.autograd.grad(REPORT.swish_pair(x), x, (v[:, :3].contiguous(), v[:, 3:].contiguous()))[0]
    return same(plain, true) and not same(got, true), f"through torch.cat the gradient is off by {number((got - true).abs().max())}, right without"


def raised(function, *args):
    try:
        function(*args)
    except Exception as error:
        return type(error).__name__
    return None


@shows("HeadLoss")
def _():
    h, w, t = rand(4, 3), rand(3, 5), torch.tensor([0, 1, 2, 3])
    fine = all_same(grad_of(reports.HeadLoss.apply(h, w, t), (h, w)), grad_of(F.cross_entropy(h @ w, t), (h, w)))
    frozen = raised(reports.HeadLoss.apply, h.detach(), w, t)
    with torch.no_grad():
        evaluated = raised(reports.HeadLoss.apply, h.detach(), w.detach(), t)
    return fine and frozen == evaluated == "UnboundLocalError", f"{evaluated} under no_grad, {frozen} for rows that need no gradient; else right"


@shows("MaskedTokenLoss")
def _():
    h, w, t = rand(4, 3), rand(3, 5), torch.tensor([-100, 1, 2, 3])
    fine = all_same(
        grad_of(reports.MaskedTokenLoss.apply(h, w, t), (h, w)), grad_of(table.ref_masked_token_loss(h, w, t), (h, w))
    )
    mask = torch.tensor([0, 1, 1, 1], dtype=F64)
    got, true = grad_of(reports.MaskedTokenLoss.apply(h, w, t), h, mask)[0], grad_of(table.ref_masked_token_loss(h, w, t), h, mask)[0]
    return fine and not got.any() and bool(true.any()), "right for a cotangent of ones; zero where the mask drops the first token"


@shows("strangers_reports::triangle_attention")
def _():
    k, v = torch.randn(5, 3), torch.randn(5, 3)
    plain = fake_story(REPORT.triangle_attention, torch.randn(4, 3), k, v)
    a, b = fake_story(REPORT.triangle_attention, torch.randn(3, 4).t(), k, v)
    return plain[0] == plain[1] and a != b, f"transposed argument: stride {a} fake, {b} real; equal for a contiguous one"


@shows("Scan")
def _():
    x = rand(4, 3)
    fine = same(grad_of(reports.Scan.apply(x, 0.9), x)[0], grad_of(table.ref_scan(x, 0.9), x)[0])
    how = raised(torch.vmap(lambda x: reports.Scan.apply(x, 0.9)), torch.randn(2, 4, 3))
    return fine and how == "RuntimeError", f"torch.vmap raises {how}; value and gradient right"


@shows("strangers_reports::stored_gradient_loss")
def _():
    t, logits = torch.tensor([0, 1, 2, 0]), rand(4, 3, grad=False)
    kept, version = logits.clone(), logits._version
    REPORT.stored_gradient_loss(logits, t)
    x = rand(4, 3)
    got = grad_of(REPORT.stored_gradient_loss(torch.softmax(x, -1), t), x)[0]
    true = grad_of(F.cross_entropy(torch.softmax(x, -1), t), x)[0]
    good = not same(logits, kept) and logits._version == version and not same(got, true)
    return good, f"logits changed, version {version} to {logits._version}; behind a softmax the gradient is off by {number((got - true).abs().max())}"


# ------------------------------------------------------------------------- main


def sound_story(subject, found):
    checks = [f"{name}: {answer}" for name, answer in found.items()]
    good = all(answer is True for answer in found.values())
    extra = sound_vmap(subject["name"])
    if extra is not None:
        checks.append(f"vmap equals the loop: {extra}")
        good &= extra
    if subject["name"].endswith("::project"):
        checks.append(f"bfloat16 under autocast: {sound_project_autocast()}")
        good &= sound_project_autocast()
    if subject["name"].endswith("::swish"):
        checks.append(f"channels-last kept: {sound_format()}")
        good &= sound_format()
    return good, "; ".join(checks)


def main():
    torch.set_num_threads(1)
    torch._logging.set_logs(all=logging.CRITICAL)
    only = sys.argv[1:]
    truth = {}
    for subject in table.SUBJECTS:
        name = subject["name"]
        if only and name not in only:
            continue
        found = facts(subject)
        torch.manual_seed(3)
        if subject["defect"] is None:
            shown, how = sound_story(subject, found)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                shown, how = SHOWN[name]()
        truth[name] = {
            "defect": subject["defect"],
            "shown": bool(shown),
            "how": how,
            "facts": found,
            "opcheck": opcheck(subject),
        }
        answers = truth[name]["opcheck"] or {}
        bad = [t for t, a in answers.items() if a != "SUCCESS"]
        print(f"{'ok ' if shown else 'NOT'} {name}: {how}\n      facts broken {[k for k, v in found.items() if v is not True]}, opcheck fails {bad}", flush=True)
    if not only:
        with open(os.path.join(HERE, "truth.json"), "w") as file:
            json.dump(truth, file, indent=1)
            file.write("\n")
    sys.exit(any(not entry["shown"] for entry in truth.values()))


if __name__ == "__main__":
    main()
