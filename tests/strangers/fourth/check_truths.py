"""Shows in plain torch that every file here is what it says: sound, or wrong in exactly the way that DEFECT names.

A sound one passes every probe of `PROBES`. A defective one shows its defect (`SHOWS`), and the set of probes that it
fails lies within the one beside it there, so that there is no second defect.
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
        a = grads(mod.FUNCTION, mod, leaves(mod, args), cots)
        if not same(a, grads(mod.surrogate, mod, leaves(mod, args), [c.clone().contiguous() for c in cots])):
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
    runs = [
        torch.autograd.grad(outs, picked(mod, leaf), cotangents(outs), retain_graph=True, allow_unused=True)
        for _ in range(2)
    ]
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
    outs = diff_outputs(fn(*leaf))
    cots = [c.requires_grad_() for c in cotangents(outs)]
    at = picked(mod, leaf)
    first = torch.autograd.grad(outs, at, cots, create_graph=True, allow_unused=True)
    keep = [g for g in first if g is not None and g.requires_grad]
    weights = cotangents(keep, seed=5)
    got = torch.autograd.grad(keep, [*at, *cots], weights, allow_unused=True)
    return [torch.zeros_like(a) if g is None else g for g, a in zip(got, [*at, *cots], strict=True)]


def second_backward(mod, args):
    if "double_backward" in mod.LIMITS:
        return True
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
    "second": second_backward,
    "reference": reference,
}


def failing(mod):
    out = {}
    for label, probe in PROBES.items():
        for i, call in enumerate(mod.CALLS):
            try:
                ok = probe(mod, call())
                why = ""
            except Exception as exc:
                ok, why = False, f"{type(exc).__name__}: {str(exc).splitlines()[0][:90]}"
            if not ok:
                out.setdefault(label, []).append((i, why))
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


def target_sign(mod):
    got, want = both(mod, 0)
    return only(mod, 0, "target") and close(got["target"], -want["target"])


def beta_averaged(mod):
    got, want = both(mod, 0)
    return only(mod, 0, "beta") and close(3 * got["beta"], want["beta"]) and only(mod, 1)


def spacing_lost(mod):
    got, want = both(mod, 1)
    return only(mod, 1, "x") and close(got["x"] / 0.25, want["x"]) and only(mod, 0)


def stale_buffer(mod):
    x, ms, momentum = mod.CALLS[0]()
    got, _ = both(mod, 0)
    new = ms.lerp(x.square().mean(0), momentum)
    cot = cotangents([x])[0]
    return only(mod, 0, "x") and close(got["x"], cot * (new + 1e-6).rsqrt()) and only(mod, 2)


def strided_input(mod):
    wav, win, hop = mod.CALLS[1]()
    dense = grads(mod.FUNCTION, mod, leaves(mod, (wav, win, hop), layout=lambda t: t.contiguous().clone()))
    as_is = grads(mod.FUNCTION, mod, leaves(mod, (wav, win, hop), layout=lambda t: t.t().clone().t()))
    want = grads(mod.surrogate, mod, leaves(mod, (wav, win, hop)))
    return not wav.is_contiguous() and same(dense, want) and not same(as_is, want)


def expanded_cotangent(mod):
    x, width = mod.CALLS[0]()
    leaf = x.clone().requires_grad_()
    (short,) = torch.autograd.grad(mod.FUNCTION(leaf, width).sum(), leaf)
    (full,) = torch.autograd.grad(mod.FUNCTION(leaf, width), leaf, torch.ones_like(x))
    (want,) = torch.autograd.grad(mod.surrogate(leaf, width).sum(), leaf)
    return close(full, want) and not close(short, want) and close(short, torch.ones_like(x))


def only_k(mod):
    args = mod.CALLS[0]()
    (got,) = grads(mod.FUNCTION, mod, leaves(mod, args, ("k",)), wrt=("k",))
    (want,) = grads(mod.surrogate, mod, leaves(mod, args, ("k",)), wrt=("k",))
    return only(mod, 0) and close(got / 2, want) and not close(got, want)


def half_overflow(mod):
    x, scale = mod.CALLS[2]()
    got, want = both(mod, 2)
    cot = cotangents([x])[0]
    plain = scale * cot / x.norm(dim=-1, keepdim=True)
    return only(mod, 0) and only(mod, 1) and not close(got["x"], want["x"]) and close(got["x"], plain)


def saved_overwritten(mod):
    return only(mod, 0) and not repeated(mod, mod.CALLS[0]())


def class_state(mod):
    return all(only(mod, i) for i in range(3)) and not interleaved(mod, mod.CALLS[0]())


def second_factor(mod):
    got, want = (second(f, mod, mod.CALLS[0]()) for f in (mod.FUNCTION, mod.surrogate))
    return only(mod, 0) and close(2 * got[0], want[0]) and close(got[1], want[1])


def second_detached(mod):
    got, want = (second(f, mod, mod.CALLS[0]()) for f in (mod.FUNCTION, mod.surrogate))
    return only(mod, 0) and not got[0].any() and want[0].any() and close(got[1], want[1])


def cotangent_scaled(mod):
    x, alpha = mod.CALLS[2]()
    leaf, cot = x.clone().requires_grad_(), torch.ones_like(x)
    torch.autograd.grad(mod.FUNCTION(leaf, alpha), leaf, cot)
    return only(mod, 2) and close(cot, torch.full_like(x, -alpha))


def eps_default(mod):
    return only(mod, 0) and only(mod, 1, "x", "weight")


def negative_side(mod):
    x, _ = mod.CALLS[0]()
    got, want = both(mod, 0)
    pos = x > 0
    near = torch.isclose(got["x"], want["x"], rtol=1e-9, atol=1e-9)
    return bool(near[pos].all()) and not near[~pos].any() and only(mod, 1)


def first_cloud_only(mod):
    got, _ = both(mod, 1)
    return only(mod, 0) and only(mod, 1, "b") and not got["b"][1:].any()


def taken_as_symmetric(mod):
    return only(mod, 0) and only(mod, 1, "x")


def outputs_swapped(mod):
    args = mod.CALLS[0]()
    cots = cotangents(diff_outputs(mod.primal(*args)))
    (got,) = grads(mod.FUNCTION, mod, leaves(mod, args), cots)
    (want,) = grads(mod.surrogate, mod, leaves(mod, args), cots)
    (other,) = grads(mod.surrogate, mod, leaves(mod, args), cots[::-1])
    return not close(got, want) and close(got, other)


def eval_mode(mod):
    return only(mod, 0) and only(mod, 1, "x") and only(mod, 2, "x")


def drawn_anew(mod):
    x, seed = mod.CALLS[1]()
    one, two = (grads(mod.FUNCTION, mod, leaves(mod, (x, seed)))[0] for _ in range(2))
    return value(mod, (x, seed)) and not close(one, two)


def single_precision(mod):
    got, want = both(mod, 0)
    gap = (got["pos"] - want["pos"]).abs().max() / want["pos"].abs().max()
    return got["pos"].dtype == torch.float64 and 1e-9 < gap < 1e-5


def ties_counted_twice(mod):
    x, dim = mod.CALLS[2]()
    leaf = x.clone().requires_grad_()
    (got,) = torch.autograd.grad(mod.FUNCTION(leaf, dim).sum(), leaf)
    return only(mod, 0) and only(mod, 1, "x") and close(got, torch.ones_like(x))


def last_dim(mod):
    got, want = both(mod, 1)
    return only(mod, 0) and only(mod, 1, "x") and only(mod, 2) and only(mod, 3) and close(got["x"], 5 * want["x"])


def kept_alive(mod):
    before = len(mod._RESIDUALS)
    mod.FUNCTION(*leaves(mod, mod.CALLS[0]()))
    return len(mod._RESIDUALS) == before + 1 and not released(mod, mod.CALLS[0]()) and only(mod, 0)


def conjugate(mod):
    return only(mod, 0, "mask") and only(mod, 1, "mask")


def duplicates(mod):
    return only(mod, 0) and only(mod, 1, "x") and only(mod, 2, "x")


GRADIENT = {"gradient", "spread", "cotangent", "outputs", "second"}
SHOWS = {
    "gaussian_nll_logvar": (target_sign, GRADIENT | {"subsets"}),
    "film_modulation": (beta_averaged, GRADIENT | {"subsets"}),
    "catmull_rom_spline": (spacing_lost, GRADIENT | {"subsets"}),
    "running_rms_scale": (stale_buffer, GRADIENT),
    "framed_energy": (strided_input, GRADIENT),
    "moving_average_causal": (expanded_cotangent, {"cotangent"}),
    "scaled_dot_scores": (only_k, {"subsets"}),
    "unit_rows_upcast": (half_overflow, GRADIENT),
    "swish_memory": (saved_overwritten, {"repeated"}),
    "clipped_fake_quant": (class_state, {"interleaved"}),
    "softsign_grad2": (second_factor, {"second"}),
    "gelu_cached_slope": (second_detached, {"second"}),
    "gradient_reversal": (cotangent_scaled, {"untouched", "cotangent", "repeated"}),
    "instance_norm_1d": (eps_default, GRADIENT | {"subsets"}),
    "mu_law_compress": (negative_side, GRADIENT),
    "chamfer_one_sided": (first_cloud_only, GRADIENT | {"subsets"}),
    "quadratic_energy": (taken_as_symmetric, GRADIENT | {"subsets"}),
    "haar_level": (outputs_swapped, GRADIENT),
    "batch_norm_train_eval": (eval_mode, GRADIENT | {"subsets"}),
    "rrelu_seeded": (drawn_anew, GRADIENT | {"repeated", "interleaved", "rng"}),
    "lennard_jones": (single_precision, GRADIENT),
    "amax_rows": (ties_counted_twice, GRADIENT | {"reference"}),
    "rms_over_dim": (last_dim, GRADIENT),
    "log_cosh_loss": (kept_alive, {"released"}),
    "phase_modulate": (conjugate, GRADIENT | {"subsets"}),
    "gather_messages": (duplicates, GRADIENT | {"subsets"}),
}


def verdict(path, verbose):
    mod = load(path)
    missing = [n for n in NAMES if not hasattr(mod, n)]
    if missing:
        return f"lacks {missing}"
    if bool(mod.DEFECT) != (path.stem in SHOWS) or not set(mod.LIMITS) <= WORDS:
        return "DEFECT or LIMITS is not what it has to be"
    if bool(mod.DEFECT) != bool(mod.KEYWORDS) or not 2 <= len(mod.CALLS) <= 4 or len(mod.KEYWORDS) > 4:
        return "KEYWORDS or CALLS is not what it has to be"
    names = [list(inspect.signature(f).parameters) for f in (mod.FUNCTION, mod.primal, mod.surrogate)]
    if names[0] != names[1] or names[0] != names[2] or not set(mod.WRT) <= set(names[0]):
        return "the parameters of FUNCTION, primal and surrogate differ"
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
    paths = [p for p in sorted(HERE.glob("*.py")) if p.name != Path(__file__).name]
    faults = 0
    for path in paths:
        why = verdict(path, "-v" in sys.argv)
        kind = "defective" if path.stem in SHOWS else "sound"
        print(f"{'FALSE: ' + why if why else 'OK'}  {kind:9}  {path.name}")
        faults += bool(why)
    sound = len(paths) - len(SHOWS)
    print(f"{len(paths)} files, {sound} sound, {len(SHOWS)} defective, {faults} not what they say")
    return 1 if faults or sound != 18 or len(SHOWS) != 26 else 0


if __name__ == "__main__":
    sys.exit(main())
