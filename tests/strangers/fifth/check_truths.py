"""Shows in plain torch that every file here is what it says: sound, or wrong in exactly the way that DEFECT names.

A sound one passes every probe of `PROBES`. A defective one shows its defect (`SHOWS`), and the set of probes that it
fails lies within the one beside it there, so that there is no second defect. What LIMITS does not exclude is probed as
well (second derivatives, vmap, jvp, half, compile); with -l the script says which entries of LIMITS would pass.
"""

import gc
import importlib.util
import inspect
import itertools
import sys
import warnings
import weakref
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
NAMES = ("FUNCTION", "primal", "surrogate", "WRT", "CALLS", "LIMITS", "DEFECT", "KEYWORDS")
WORDS = {"double_backward", "vmap", "jvp", "float64", "compile", "half"}
TOL = {torch.float64: 1e-9, torch.float32: 2e-5, torch.float16: 4e-2}


def load(path):
    spec = importlib.util.spec_from_file_location(f"stranger_{path.stem}", path)
    mod = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mod)
    return mod


def smooth(t):
    return isinstance(t, torch.Tensor) and (t.is_floating_point() or t.is_complex())


def close(a, b, factor=1.0):
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    real = a.abs().dtype if a.is_complex() else a.dtype
    tol = TOL.get(real, 0.0) * factor
    size = float(b.abs().max()) if b.numel() else 0.0
    return torch.allclose(a, b, rtol=tol, atol=tol * (size if real == torch.float16 else 1.0))


def names_of(mod):
    return list(inspect.signature(mod.FUNCTION).parameters)


def spread(t):
    """The same values in a layout that is not contiguous."""
    return torch.stack([t, torch.full_like(t, 7.0)], -1)[..., 0] if t.dim() else t


def leaves(mod, args, wrt=None, layout=lambda t: t.clone()):
    wrt = mod.WRT if wrt is None else wrt
    out = []
    for name, a in zip(names_of(mod), args, strict=True):
        if isinstance(a, torch.Tensor):
            a = (layout(a) if smooth(a) else a.clone()).detach()
            a.requires_grad_(name in wrt)
        out.append(a)
    return out


def outputs(value):
    return list(value) if isinstance(value, tuple) else [value]


def diff_outputs(value):
    return [o for o in outputs(value) if smooth(o)]


def picked(mod, args, wrt=None):
    wrt = mod.WRT if wrt is None else wrt
    return [a for n, a in zip(names_of(mod), args, strict=True) if n in wrt]


def cotangents(outs, seed=123):
    gen = torch.Generator().manual_seed(seed)
    return [torch.randn(o.shape, generator=gen, dtype=torch.float32).to(o.dtype) for o in outs]


def grads(fn, mod, args, cots=None, wrt=None, which=None, **kw):
    outs = diff_outputs(fn(*args))
    cots = cotangents(outs) if cots is None else cots
    pairs = [(o, c) for i, (o, c) in enumerate(zip(outs, cots, strict=True)) if which is None or i == which]
    pairs = [(o, c) for o, c in pairs if o.requires_grad]
    at = picked(mod, args, wrt)
    if not pairs:
        return [torch.zeros_like(a) for a in at]
    got = torch.autograd.grad([o for o, _ in pairs], at, [c for _, c in pairs], allow_unused=True, **kw)
    return [torch.zeros_like(a) if g is None else g for g, a in zip(got, at, strict=True)]


def same(one, other, factor=1.0):
    return all(close(a, b, factor) for a, b in zip(one, other, strict=True))


def value(mod, args):
    a, b = (outputs(f(*leaves(mod, args))) for f in (mod.FUNCTION, mod.primal))
    return len(a) == len(b) and same([t.detach() for t in a], [t.detach() for t in b])


def gradient(mod, args):
    return same(grads(mod.FUNCTION, mod, leaves(mod, args)), grads(mod.surrogate, mod, leaves(mod, args)))


def gradient_spread(mod, args):
    a = grads(mod.FUNCTION, mod, leaves(mod, args, layout=spread))
    return same(a, grads(mod.surrogate, mod, leaves(mod, args)))


def cotangent_layouts(mod, args):
    outs = diff_outputs(mod.primal(*args))
    for make in (
        lambda o: torch.ones((), dtype=o.dtype).expand(o.shape),
        lambda o: spread(cotangents([o])[0]),
        lambda o: cotangents([o.mT])[0].mT if o.dim() > 1 else cotangents([o])[0],
    ):
        cots = [make(o) for o in outs]
        plain = [c.clone(memory_format=torch.contiguous_format) for c in cots]
        a = grads(mod.FUNCTION, mod, leaves(mod, args), cots)
        if not same(a, grads(mod.surrogate, mod, leaves(mod, args), plain)):
            return False
    return True


def subsets(mod, args):
    for n in range(1, len(mod.WRT)):
        for wrt in itertools.combinations(mod.WRT, n):
            a = grads(mod.FUNCTION, mod, leaves(mod, args, wrt), wrt=wrt)
            if not same(a, grads(mod.surrogate, mod, leaves(mod, args, wrt), wrt=wrt)):
                return False
    return True


def each_output(mod, args):
    for i in range(len(diff_outputs(mod.primal(*args)))):
        a = grads(mod.FUNCTION, mod, leaves(mod, args), which=i)
        if not same(a, grads(mod.surrogate, mod, leaves(mod, args), which=i)):
            return False
    return True


def repeated(mod, args):
    leaf = leaves(mod, args)
    outs = diff_outputs(mod.FUNCTION(*leaf))
    runs = []
    for _ in range(2):
        got = torch.autograd.grad(outs, picked(mod, leaf), cotangents(outs), retain_graph=True, allow_unused=True)
        runs.append([None if g is None else g.clone() for g in got])
    return all((a is None and b is None) or torch.equal(a, b) for a, b in zip(*runs, strict=True))


def interleaved(mod, args):
    first = leaves(mod, args)
    alone = grads(mod.FUNCTION, mod, leaves(mod, args))
    outs = diff_outputs(mod.FUNCTION(*first))
    for call in mod.CALLS:
        mod.FUNCTION(*leaves(mod, call()))
    got = torch.autograd.grad(outs, picked(mod, first), cotangents(outs), allow_unused=True)
    got = [torch.zeros_like(a) if g is None else g for g, a in zip(got, picked(mod, first), strict=True)]
    return same(got, alone)


def untouched(mod, args):
    leaf = leaves(mod, args)
    cots = cotangents(diff_outputs(mod.primal(*args)))
    held = [*(a for a in leaf if isinstance(a, torch.Tensor)), *cots]
    before = [(t.detach().clone(), t._version) for t in held]
    grads(mod.FUNCTION, mod, leaf, cots)
    return all(torch.equal(t, b) and t._version == v for t, (b, v) in zip(held, before, strict=True))


def released(mod, args):
    leaf = leaves(mod, args)
    grads(mod.FUNCTION, mod, leaf)
    refs = [weakref.ref(a) for a in leaf if isinstance(a, torch.Tensor)]
    del leaf
    gc.collect()
    return all(r() is None for r in refs)


def rng_kept(mod, args):
    before = torch.get_rng_state()
    grads(mod.FUNCTION, mod, leaves(mod, args))
    return torch.equal(before, torch.get_rng_state())


def second(fn, mod, args):
    leaf = leaves(mod, args)
    smooth_in_truth = [o.requires_grad for o in diff_outputs(mod.surrogate(*leaves(mod, args)))]
    outs = [o for o, keep in zip(diff_outputs(fn(*leaf)), smooth_in_truth, strict=True) if keep]
    cots = [c.requires_grad_() for c in cotangents(outs)]
    at = picked(mod, leaf)
    first = torch.autograd.grad(outs, at, cots, create_graph=True, allow_unused=True)
    keep = [g for g in first if g is not None and g.requires_grad]
    weights = cotangents(keep, seed=5)
    got = torch.autograd.grad(keep, [*at, *cots], weights, allow_unused=True)
    return [torch.zeros_like(a) if g is None else g for g, a in zip(got, [*at, *cots], strict=True)]


def second_backward(mod, args):
    return same(second(mod.FUNCTION, mod, args), second(mod.surrogate, mod, args), 10.0)


def reference(mod, args):
    """The surrogate alone, by finite differences: what the others compare with has to be right itself."""
    leaf = leaves(mod, args)
    if any(smooth(a) and a.dtype in (torch.float16, torch.float32) for a in leaf):
        return True

    def of_wrt(*at):
        it = iter(at)
        full = [next(it) if n in mod.WRT else a for n, a in zip(names_of(mod), leaf, strict=True)]
        return tuple(diff_outputs(mod.surrogate(*full)))

    return torch.autograd.gradcheck(of_wrt, picked(mod, leaf), raise_exception=False)


def marks(mod, args):
    a, b = (outputs(f(*leaves(mod, args))) for f in (mod.FUNCTION, mod.surrogate))
    return [o.requires_grad for o in a] == [o.requires_grad for o in b]


def span(t):
    start = t.data_ptr()
    return start, start + t.untyped_storage().nbytes() - t.storage_offset() * t.element_size()


def fresh(mod, args):
    """No output shares memory with an argument."""
    leaf = leaves(mod, args)
    held = [span(a) for a in leaf if isinstance(a, torch.Tensor)]
    made = [span(o) for o in outputs(mod.FUNCTION(*leaf))]
    return not any(a < d and c < b for (a, b), (c, d) in itertools.product(held, made))


def raw(mod, args):
    """Each custom node hands back gradients of the shape and dtype of its inputs, before the engine repairs them."""
    outs = [o for o in diff_outputs(mod.FUNCTION(*leaves(mod, args))) if o.requires_grad]
    bad, seen, todo = [], set(), [o.grad_fn for o in outs]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        todo += [n for n, _ in node.next_functions]
        if isinstance(node, torch.autograd.function.BackwardCFunction):

            def hook(grad_inputs, _outputs, node=node):
                for g, (nxt, nr) in zip(grad_inputs, node.next_functions, strict=False):
                    if g is not None and nxt is not None:
                        meta = nxt._input_metadata[nr]
                        bad.append(g.shape != tuple(meta.shape) or g.dtype != meta.dtype)

            node.register_hook(hook)
    torch.autograd.backward(outs, cotangents(outs))
    return not any(bad)


def cast(args, dtype):
    return [a.to(dtype) if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args]


def lower(mod, args, dtype, tol):
    low = cast(args, dtype)
    high = cast(low, torch.float64)
    leaf, ref = leaves(mod, low), leaves(mod, high)
    pairs = []
    outs, want = diff_outputs(mod.FUNCTION(*leaf)), diff_outputs(mod.FUNCTION(*ref))
    pairs += zip(outs, want, strict=True)
    cots = [c.to(o.dtype) for c, o in zip(cotangents(want), outs, strict=True)]
    got = grads(mod.FUNCTION, mod, leaves(mod, low), cots)
    pairs += zip(got, grads(mod.FUNCTION, mod, leaves(mod, high), [c.double() for c in cots]), strict=True)
    if any(g.dtype != a.dtype for g, a in zip(got, picked(mod, leaf), strict=True)):
        return False
    return all(
        bool((a.detach().double() - b.detach()).abs().max() <= tol * b.detach().abs().max().clamp(min=tol))
        for a, b in pairs
        if a.numel()
    )


def locked(mod):
    return "float64" in mod.LIMITS or any(
        isinstance(a, torch.Tensor) and a.is_complex() for call in mod.CALLS for a in call()
    )


def single(mod, args):
    return locked(mod) or lower(mod, args, torch.float32, 1e-4)


def half(mod, args):
    return lower(mod, args, torch.float16, 2e-2) and lower(mod, args, torch.bfloat16, 1e-1)


def forward_mode(mod, args):
    wrts = [(n,) for n in mod.WRT] + [tuple(mod.WRT)]
    for wrt in wrts:
        leaf = [a.detach() if isinstance(a, torch.Tensor) else a for a in leaves(mod, args)]
        at = picked(mod, leaf, wrt)
        tangents = tuple(cotangents(at, seed=9))
        both_ = []
        for fn in (mod.FUNCTION, mod.surrogate):

            def of_wrt(*vals, fn=fn, leaf=leaf, wrt=wrt):
                it = iter(vals)
                full = [next(it) if n in wrt else a for n, a in zip(names_of(mod), leaf, strict=True)]
                return tuple(diff_outputs(fn(*full)))

            both_.append(torch.func.jvp(of_wrt, tuple(at), tangents)[1])
        if not same(*both_):
            return False
    return True


def batched(mod, args):
    """torch.func.vmap over the arguments of WRT, at each position of the batch dim, against a plain loop."""
    wrts = {(n,) for n in mod.WRT} | {tuple(mod.WRT)}
    for wrt, place in itertools.product(sorted(wrts), (0, 1, -1)):
        leaf = [a.detach() if isinstance(a, torch.Tensor) else a for a in leaves(mod, args)]
        at = picked(mod, leaf, wrt)
        if any(place > a.dim() for a in at):
            continue

        def of_wrt(*vals, leaf=leaf, wrt=wrt):
            it = iter(vals)
            full = [next(it) if n in wrt else a for n, a in zip(names_of(mod), leaf, strict=True)]
            return tuple(diff_outputs(mod.FUNCTION(*full)))

        def pulled(*vals, of_wrt=of_wrt):
            outs, back = torch.func.vjp(of_wrt, *vals)
            return back(tuple(torch.arange(1.0, o.numel() + 1).cos().to(o.dtype).view(o.shape) for o in outs))

        rows = [tuple(a * f for a in at) for f in (1.0, 1.1, 0.9)]
        stacked = [torch.stack(list(col), place) for col in zip(*rows, strict=True)]
        for fn in (of_wrt, pulled):
            want = [torch.stack(list(col)) for col in zip(*(fn(*row) for row in rows), strict=True)]
            if not same(torch.func.vmap(fn, in_dims=place)(*stacked), want):
                return False
        leafs = [s.clone().requires_grad_() for s in stacked]
        outs = torch.func.vmap(of_wrt, in_dims=place)(*leafs)
        got = torch.autograd.grad(outs, leafs, [torch.ones_like(o) for o in outs])
        cols = []
        for row in rows:
            row = [a.clone().requires_grad_() for a in row]
            outs = of_wrt(*row)
            cols.append(torch.autograd.grad(outs, row, [torch.ones_like(o) for o in outs]))
        if not same(got, [torch.stack(list(col), place) for col in zip(*cols, strict=True)]):
            return False
    return True


def compiled(mod, args):
    torch._dynamo.reset()
    fn = torch.compile(mod.FUNCTION, backend="aot_eager")
    a, b = (outputs(f(*leaves(mod, args))) for f in (fn, mod.FUNCTION))
    if not same([t.detach() for t in a], [t.detach() for t in b]):
        return False
    return same(grads(fn, mod, leaves(mod, args)), grads(mod.FUNCTION, mod, leaves(mod, args)))


LIMITED = {
    "second": ("double_backward", second_backward),
    "vmap": ("vmap", batched),
    "jvp": ("jvp", forward_mode),
    "half": ("half", half),
    "compile": ("compile", compiled),
}


PROBES = {
    "value": value,
    "gradient": gradient,
    "spread": gradient_spread,
    "cotangent": cotangent_layouts,
    "subsets": subsets,
    "outputs": each_output,
    "repeated": repeated,
    "interleaved": interleaved,
    "untouched": untouched,
    "released": released,
    "rng": rng_kept,
    "marks": marks,
    "fresh": fresh,
    "raw": raw,
    "single": single,
    "reference": reference,
}


def failing(mod):
    out = {}
    probes = PROBES | {k: probe for k, (word, probe) in LIMITED.items() if word not in mod.LIMITS}
    for label, probe in probes.items():
        for i, call in enumerate(mod.CALLS):
            try:
                ok = probe(mod, call())
                why = ""
            except Exception as exc:
                ok, why = False, f"{type(exc).__name__}: {str(exc).splitlines()[0][:90]}"
            if not ok:
                out.setdefault(label, []).append((i, why))
    return out


def needless(mod):
    """The entries of LIMITS whose probe passes at every call."""
    out = []
    for word, probe in LIMITED.values():
        if word in mod.LIMITS:
            try:
                out += [word] if all(probe(mod, call()) for call in mod.CALLS) else []
            except Exception:
                continue
    return out


# --- what each defective one does wrong, shown one by one ---------------------------------------------------------


def both(mod, i, **kw):
    """Gradients of FUNCTION and of the surrogate at the i-th call, by argument name."""
    args = mod.CALLS[i]()
    pair = (grads(f, mod, leaves(mod, args), **kw) for f in (mod.FUNCTION, mod.surrogate))
    return [dict(zip(mod.WRT, g, strict=True)) for g in pair]


def only(mod, i, *wrong):
    """At call i just the gradients named `wrong` differ."""
    got, want = both(mod, i)
    return all(close(got[n], want[n]) == (n not in wrong) for n in mod.WRT)


def barrier_branch(mod):
    (got,), (want,) = (list(d.values()) for d in both(mod, 1))
    slack, _, delta = mod.CALLS[1]()
    low = slack < delta
    return close(got[low] / delta, want[low]) and close(got[~low], want[~low]) and only(mod, 0) and only(mod, 2)


def wing_sign(mod):
    pred, target, width, _ = mod.CALLS[1]()
    got, want = both(mod, 1)
    bad = (pred < target) & (pred - target > -width)
    return all(close(got[n][bad], -want[n][bad]) and close(got[n][~bad], want[n][~bad]) for n in mod.WRT) and all(
        only(mod, i) for i in (0, 2)
    )


def heads_mixed(mod):
    scores, _ = mod.CALLS[1]()
    got, want = both(mod, 1)
    total = close(got["slopes"].sum(), want["slopes"].sum())
    return scores.shape[0] > 1 and total and only(mod, 1, "slopes") and only(mod, 0)


def arguments_swapped(mod):
    got, want = both(mod, 0)
    return only(mod, 0, "ec50", "slope") and close(got["ec50"], want["slope"]) and close(got["slope"], want["ec50"])


def outputs_swapped(mod):
    args = mod.CALLS[0]()
    cots = cotangents(diff_outputs(mod.primal(*args)))
    got = grads(mod.FUNCTION, mod, leaves(mod, args), cots)
    other = grads(mod.surrogate, mod, leaves(mod, args), cots[::-1])
    return same(got, other) and only(mod, 0, *mod.WRT)


def token_over_visible(mod):
    patches, _, keep = mod.CALLS[0]()
    got, _ = both(mod, 0)
    return only(mod, 0, "token") and close(got["token"], cotangents([patches])[0][keep].sum(0))


def adjacency_transposed(mod):
    query, key, adj = mod.CALLS[1]()
    got, _ = both(mod, 1)
    cot = cotangents([query @ key.mT])[0]
    return only(mod, 0) and only(mod, 2) and only(mod, 1, "key") and close(got["key"], (cot.t() * adj) @ query)


def incoming_ignored(mod):
    args = mod.CALLS[0]()
    one, three = (grads(mod.FUNCTION, mod, leaves(mod, args), [torch.tensor(c).double()]) for c in (1.0, 3.0))
    want = grads(mod.surrogate, mod, leaves(mod, args), [torch.tensor(1.0).double()])
    return same(one, three) and same(one, want)


def first_output_alone(mod):
    got, want = both(mod, 0, which=0)
    return not got["log_scale"].any() and want["log_scale"].any() and all(only(mod, i) for i in range(3))


def transposed_input(mod):
    x, k = mod.CALLS[1]()
    dense = grads(mod.FUNCTION, mod, leaves(mod, (x, k), layout=lambda t: t.contiguous()))
    got, want = both(mod, 1)
    return not x.is_contiguous() and same(dense, list(want.values())) and not got["update"].any()


def transposed_cotangent(mod):
    x, rows = mod.CALLS[0]()
    cot = cotangents([x.t()])[0].t()
    (got,) = grads(mod.FUNCTION, mod, leaves(mod, (x, rows)), [cot])
    (want,) = grads(mod.FUNCTION, mod, leaves(mod, (x, rows)), [cot.contiguous()])
    return only(mod, 0) and not got.any() and want.any()


def features_for_batch(mod):
    za, _ = mod.CALLS[1]()
    n, d = za.shape
    got, want = both(mod, 1)
    return n != d and only(mod, 0) and only(mod, 2) and all(close(got[k] * d / n, want[k]) for k in mod.WRT)


def mean_by_count(mod):
    _, _, weight, _ = mod.CALLS[1]()
    got, want = both(mod, 1)
    ratio = weight.numel() / weight.sum()
    return only(mod, 0) and only(mod, 2) and close(got["log_rate"] * ratio, want["log_rate"])


def replicated_edge(mod):
    got, want = both(mod, 1)
    inner = close(got["u"][..., 1:-1], want["u"][..., 1:-1])
    return inner and only(mod, 0) and only(mod, 2) and only(mod, 1, "u")


def half_sum_overflows(mod):
    got, want = both(mod, 2)
    return (
        only(mod, 0)
        and only(mod, 1)
        and only(mod, 2, "gain")
        and got["gain"].isinf().any()
        and not want["gain"].isinf().any()
    )


def single_precision(mod):
    got, want = both(mod, 0)
    gaps = [(got[n] - want[n]).abs().max() / want[n].abs().max() for n in mod.WRT]
    return all(g.dtype == torch.float64 for g in got.values()) and all(1e-9 < gap < 1e-5 for gap in gaps)


def second_by_freq(mod):
    got, want = (second(f, mod, mod.CALLS[0]()) for f in (mod.FUNCTION, mod.surrogate))
    right = [close(a, b, 10.0) for a, b in zip(got, want, strict=True)]
    return only(mod, 0) and right == [True, False, True, True]


def cross_term(mod):
    a, b = mod.CALLS[0]()
    got, want = (second(f, mod, mod.CALLS[0]()) for f in (mod.FUNCTION, mod.surrogate))
    cot, (wa, wb) = cotangents([a])[0], cotangents([a, b], seed=5)
    cross = -torch.polygamma(1, a + b) * cot
    return close(got[0] + cross * wb, want[0]) and close(got[1] + cross * wa, want[1]) and close(got[2], want[2])


def kept_input_changed(mod):
    x, weight = mod.CALLS[0]()
    got, _ = both(mod, 0)
    h = x @ weight
    at = h + torch.nn.functional.silu(h)
    s = torch.sigmoid(at)
    return close(got["x"], (cotangents([h])[0] * (1 + s * (1 + at * (1 - s)))) @ weight.t())


def kept_output_changed(mod):
    x, gain = mod.CALLS[0]()
    got, _ = both(mod, 0)
    return only(mod, 1) and close(got["x"], cotangents([x])[0] * gain * (1 - (gain * torch.tanh(x)).square()))


def shared_buffer(mod):
    return all(only(mod, i) for i in range(3)) and not interleaved(mod, mod.CALLS[0]())


def first_beta(mod):
    frames, _ = mod.CALLS[1]()
    _, beta = mod.CALLS[0]()
    n = frames.shape[-1]
    win = torch.kaiser_window(n, periodic=False, beta=beta, dtype=torch.float64)
    return only(mod, 0) and only(mod, 2) and close(both(mod, 1)[0]["frames"], cotangents([frames])[0] * win)


def never_freed(mod):
    return not released(mod, mod.CALLS[0]()) and only(mod, 0)


def last_held(mod):
    leaf = leaves(mod, mod.CALLS[0]())
    grads(mod.FUNCTION, mod, leaf)
    ref = weakref.ref(leaf[0])
    del leaf
    gc.collect()
    held = ref() is not None
    mod._STATS.clear()
    gc.collect()
    return held and ref() is None and only(mod, 0)


def input_shifted(mod):
    energy, temperature = mod.CALLS[0]()
    before = energy.clone()
    mod.FUNCTION(energy, temperature)
    return only(mod, 0) and close(energy, before - before.min())


def cotangent_zeroed(mod):
    q, low, high, tick = mod.CALLS[0]()
    leaf, cot = q.clone().requires_grad_(), torch.ones_like(q)
    torch.autograd.grad(mod.FUNCTION(leaf, low, high, tick), leaf, cot)
    return only(mod, 0) and torch.equal(cot == 0, (q < low) | (q > high))


def beta_none(mod):
    got, want = both(mod, 0)
    return only(mod, 0, "beta") and not got["beta"].any() and want["beta"].any()


def reseeded(mod):
    x, p, seed = mod.CALLS[0]()
    leaf = x.clone().requires_grad_()
    mod.FUNCTION(leaf, p, seed).sum().backward()
    one = torch.rand(3)
    torch.manual_seed(seed)
    torch.rand(x.shape[:2])
    return only(mod, 0) and torch.equal(one, torch.rand(3))


def cast_weight_lost(mod):
    got, _ = both(mod, 1)
    return only(mod, 0) and only(mod, 1, "weight") and not got["weight"].any()


def flag_at_backward(mod):
    x, _, _ = mod.CALLS[1]()
    got, _ = both(mod, 1)
    return only(mod, 0) and only(mod, 1, "x") and close(got["x"], cotangents([x])[0])


def nan_at_zero(mod):
    (x,) = mod.CALLS[1]()
    got, want = both(mod, 1)
    zero = x == 0
    rest = close(got["x"][~zero], want["x"][~zero])
    return bool(got["x"][zero].isnan().all()) and not want["x"].isnan().any() and rest and only(mod, 0)


def row_zero_as_padding(mod):
    got, _ = both(mod, 1)
    _, _, pad = mod.CALLS[1]()
    return only(mod, 0) and only(mod, 2) and pad != 0 and not got["weight"][0].any() and got["weight"][pad].any()


def gain_with_x_only(mod):
    x, weight, gain = mod.CALLS[0]()
    (got,) = grads(mod.FUNCTION, mod, leaves(mod, (x, weight, gain), ("weight",)), wrt=("weight",))
    return only(mod, 0) and close(got * gain, both(mod, 0)[1]["weight"])


def not_conjugated(mod):
    return all(only(mod, i, "line") for i in range(2))


def tangent_of_m(mod):
    s, m = mod.CALLS[1]()
    one = [torch.func.jvp(lambda t, f=f: f(t, m), (s,), (torch.ones_like(s),))[1] for f in (mod.FUNCTION, mod.primal)]
    two = [torch.func.jvp(lambda t, f=f: f(s, t), (m,), (torch.ones_like(m),))[1] for f in (mod.FUNCTION, mod.primal)]
    return all(only(mod, i) for i in range(3)) and close(*one) and not close(*two)


def batch_dim_taken_as_first(mod):
    x, width = mod.CALLS[0]()
    many = torch.stack([x, 2 * x, 3 * x])
    first = torch.func.vmap(lambda v: mod.FUNCTION(v, width))(many)
    last = torch.func.vmap(lambda v: mod.FUNCTION(v, width), in_dims=1)(many.t().clone())
    return (
        only(mod, 0)
        and close(first, mod.primal(many, width))
        and not (last.shape == first.shape and close(last, first))
    )


def adds_up(mod):
    leaf = leaves(mod, mod.CALLS[0]())
    out = mod.FUNCTION(*leaf)
    cot = cotangents([out])
    one, two = ([g.clone() for g in torch.autograd.grad(out, leaf[:2], cot, retain_graph=True)] for _ in range(2))
    return only(mod, 0) and close(one[0], two[0]) and close(2 * one[1], two[1])


def gate_requires_grad(mod):
    _, gate = mod.FUNCTION(*leaves(mod, mod.CALLS[0]()))
    return gate.requires_grad and only(mod, 0)


def shares_memory(mod):
    hidden, prefix = mod.CALLS[0]()
    before = hidden.clone()
    out = mod.FUNCTION(hidden, prefix)
    out.mul_(2)
    changed = torch.equal(hidden[:, prefix:], 2 * before[:, prefix:])
    return changed and hidden._version == 0 and not out._is_view() and only(mod, 0)


def inputs_unpacked_in_reverse(mod):
    value, _ = mod.CALLS[0]()
    got, _ = both(mod, 0)
    return only(mod, 0, "value", "gate") and close(got["value"], cotangents([value])[0] * torch.sigmoid(value))


GRADIENT = {"gradient", "spread", "cotangent", "outputs", "second"}
SHOWS = {
    "relaxed_log_barrier": (barrier_branch, GRADIENT),
    "wing_landmark_loss": (wing_sign, GRADIENT | {"subsets"}),
    "alibi_attention_bias": (heads_mixed, GRADIENT | {"subsets"}),
    "hill_dose_response": (arguments_swapped, GRADIENT | {"subsets"}),
    "iq_log_polar": (outputs_swapped, GRADIENT | {"subsets"}),
    "mae_mask_token": (token_over_visible, GRADIENT | {"subsets"}),
    "graph_attention_logits": (adjacency_transposed, GRADIENT | {"subsets"}),
    "soft_dice_loss": (incoming_ignored, GRADIENT),
    "affine_coupling": (first_output_alone, {"outputs"}),
    "federated_topk": (transposed_input, GRADIENT),
    "block_interleaver": (transposed_cotangent, {"cotangent"}),
    "barlow_cross_corr": (features_for_batch, GRADIENT | {"subsets"}),
    "weighted_poisson_nll": (mean_by_count, GRADIENT),
    "central_difference": (replicated_edge, GRADIENT),
    "utterance_mean_gain": (half_sum_overflows, GRADIENT | {"subsets", "single", "half"}),
    "harmonic_synth": (single_precision, GRADIENT | {"subsets"}),
    "gabor_atom": (second_by_freq, {"second"}),
    "log_beta_fn": (cross_term, {"second"}),
    "residual_gate_inplace": (kept_input_changed, GRADIENT | {"subsets"}),
    "tanh_gain_stage": (kept_output_changed, GRADIENT),
    "mel_log_workspace": (shared_buffer, {"interleaved"}),
    "kaiser_taper": (first_beta, GRADIENT | {"value"}),
    "logistic_growth": (never_freed, {"released"}),
    "perplexity_stats": (last_held, {"released"}),
    "boltzmann_weights": (input_shifted, {"untouched"}),
    "workspace_clip": (cotangent_zeroed, {"untouched", "cotangent"}),
    "generalized_gaussian_nll": (beta_none, GRADIENT | {"subsets"}),
    "feature_dropout_seeded": (reseeded, {"rng"}),
    "mixed_dtype_linear": (cast_weight_lost, GRADIENT | {"subsets"}),
    "center_batch_module": (flag_at_backward, GRADIENT | {"compile"}),
    "phi1_exponential": (nan_at_zero, GRADIENT | {"repeated", "interleaved", "single", "half", "compile"}),
    "padded_item_embedding": (row_zero_as_padding, GRADIENT),
    "gained_projection": (gain_with_x_only, {"subsets"}),
    "rf_reflection": (not_conjugated, GRADIENT | {"subsets"}),
    "seth_hill_strain": (tangent_of_m, {"jvp"}),
    "rolling_sum": (batch_dim_taken_as_first, {"vmap"}),
    "streamed_linear": (adds_up, {"repeated"}),
    "noise_gate_mask": (gate_requires_grad, {"marks"}),
    "drop_prefix_tokens": (shares_memory, {"fresh"}),
    "glu_pair": (inputs_unpacked_in_reverse, GRADIENT | {"subsets"}),
}


def verdict(path, verbose):
    mod = load(path)
    missing = [n for n in NAMES if not hasattr(mod, n)]
    if missing:
        return f"lacks {missing}"
    if bool(mod.DEFECT) != (path.stem in SHOWS) or not set(mod.LIMITS) <= WORDS:
        return "DEFECT or LIMITS is not what it has to be"
    if bool(mod.DEFECT) != bool(mod.KEYWORDS) or not 2 <= len(mod.CALLS) <= 4 or len(mod.KEYWORDS) > 6:
        return "KEYWORDS or CALLS is not what it has to be"
    names = [list(inspect.signature(f).parameters) for f in (mod.FUNCTION, mod.primal, mod.surrogate)]
    if names[0] != names[1] or names[0] != names[2] or not set(mod.WRT) <= set(names[0]):
        return "the parameters of FUNCTION, primal and surrogate differ"
    if "-l" in sys.argv:
        spare = needless(mod)
        print("   ", path.stem, "LIMITS that pass:", spare) if spare else None
    bad = failing(mod)
    if verbose and bad:
        print("   ", path.stem, bad)
    if not mod.DEFECT:
        return f"fails {bad}" if bad else ""
    shows, allowed = SHOWS[path.stem]
    if not set(bad) <= allowed:
        return f"fails more than its defect explains: { {k: v for k, v in bad.items() if k not in allowed} }"
    return "" if shows(mod) else "does not show its defect"


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    chosen = [a for a in sys.argv[1:] if not a.startswith("-")]
    paths = [p for p in sorted(HERE.glob("*.py")) if p.name != Path(__file__).name]
    paths = [p for p in paths if not chosen or p.stem in chosen]
    faults = 0
    for path in paths:
        why = verdict(path, "-v" in sys.argv)
        kind = "defective" if path.stem in SHOWS else "sound"
        print(f"{'FALSE: ' + why if why else 'OK'}  {kind:9}  {path.name}")
        faults += bool(why)
    wrong = sum(p.stem in SHOWS for p in paths)
    print(f"{len(paths)} files, {len(paths) - wrong} sound, {wrong} defective, {faults} not what they say")
    return 1 if faults or (not chosen and (len(paths) - wrong, wrong) != (20, 40)) else 0


if __name__ == "__main__":
    sys.exit(main())
