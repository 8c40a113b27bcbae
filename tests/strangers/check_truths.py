"""Compare every function of this folder with its own plain torch version, and run its show() or check().

    python tests/strangers/check_truths.py [part of a file name]

Columns: largest relative error of the values, of the first derivatives (random incoming gradients;
all inputs together, one input at a time, one output at a time), of the second derivatives, and of
first derivatives and values for non-contiguous inputs and incoming gradients. "once": backward is marked
once_differentiable. A sound file must show nothing but rounding, an unsound one must have show() == True.
"""

import importlib.util
import inspect
import sys
from pathlib import Path

import torch

torch.set_num_threads(1)
HERE = Path(__file__).parent
FOLDERS = ("flat", "functions", "second", "third")  # operators/ has a truth.py of its own


def load(path):
    spec = importlib.util.spec_from_file_location("stranger_" + path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def each(value, change):
    if isinstance(value, (list, tuple)):
        return type(value)(each(v, change) for v in value)
    return change(value) if isinstance(value, torch.Tensor) else value


def tensors(value):
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors(v)]
    return [value] if isinstance(value, torch.Tensor) else []


def differentiable(t):
    return t.is_floating_point() or t.is_complex()


def strided(t):
    return t.mT.contiguous().mT if t.dim() > 1 else torch.stack([t, t], -1)[..., 0]


def bad(mine, true):
    """Relative error, infinite where finite-ness differs."""
    if mine.shape != true.shape:
        return float("inf")
    if not true.numel():
        return 0.0
    mine, true = mine.detach().to(true.dtype), true.detach()
    if not torch.equal(mine.isfinite(), true.isfinite()):
        return float("inf")
    ok = true.isfinite()
    scale = max(1e-3, true[ok].abs().max().item()) if ok.any() else 1.0
    return (mine[ok] - true[ok]).abs().max().item() / scale if ok.any() else 0.0


class Case:
    """One call of one file, run through the function or through its reference."""

    def __init__(self, file, reference, args, kwargs):
        self.file, self.args, self.kwargs = file, args, kwargs
        self.model = file.module() if hasattr(file, "module") else None
        run = getattr(file, "function", self.model)
        self.both = [run, self.with_model(reference)]
        signature = inspect.signature(reference)
        bound = signature.bind(*([self.model] if self.model else []), *args, **kwargs)
        self.given = {k: v for k, v in bound.arguments.items() if k in file.wrt}

    def with_model(self, reference):
        if self.model is None:
            return reference
        return lambda *a, **k: reference(self.model, *a, **k)

    def run(self, which, names, change=lambda t: t):
        leaves = {}

        def leaf(t):
            if id(t) not in leaves:
                leaves[id(t)] = t.detach().clone().requires_grad_()
            return change(leaves[id(t)].clone())

        wanted = [id(t) for n in names for t in tensors(self.given.get(n, ())) if differentiable(t)]

        def new(t):
            return leaf(t) if id(t) in wanted else change(t.clone())

        out = self.both[which](*each(self.args, new), **{k: each(v, new) for k, v in self.kwargs.items()})
        inputs = [leaves[i] for i in dict.fromkeys(wanted)]
        if self.model is not None:
            inputs += [p for n, p in self.model.named_parameters() if n in names]
        return [o for o in tensors([out]) if differentiable(o)], inputs

    def grads(self, which, names, seed, used=None, change=lambda t: t, second=False):
        outs, inputs = self.run(which, names, change)
        gen = torch.Generator().manual_seed(seed)
        vs = [change(torch.randn(o.shape, generator=gen, dtype=o.dtype)).detach() for o in outs]
        if second:
            vs = [v.requires_grad_() for v in vs]
        pick = [i for i in range(len(outs)) if (used is None or i == used) and outs[i].requires_grad]
        if not pick or not inputs:
            return outs, [torch.zeros_like(i) for i in inputs], []
        first = torch.autograd.grad(
            [outs[i] for i in pick], inputs, [vs[i] for i in pick],
            allow_unused=True, create_graph=second, materialize_grads=True,
        )  # fmt: skip
        more = []
        if second:
            us = [torch.randn(i.shape, generator=gen, dtype=i.dtype) for i in inputs]
            wanted = [*inputs, *(vs[i] for i in pick)]
            kept = [(f, u) for f, u in zip(first, us) if f.requires_grad]
            for w in wanted:
                w.grad = None
            # not autograd.grad: with allow_unused it walks around what once_differentiable raises
            if kept:
                torch.autograd.backward([f for f, _ in kept], [u for _, u in kept])
            more = [torch.zeros_like(w) if w.grad is None else w.grad for w in wanted]
        return outs, first, more

    def compare(self, part, **how):
        try:
            mine, true = (self.grads(which, **how)[part] for which in (0, 1))
        except RuntimeError as e:
            if "once_differentiable" in str(e):
                return "once"
            return "raises"
        return max((bad(m, t) for m, t in zip(mine, true)), default=0.0)


def worst(found):
    for word in ("raises", "once"):
        if word in found:
            return word
    return max(found, default=0.0)


def report(path):
    file = load(path)
    reference = getattr(file, "surrogate", None) or file.primal
    values, first, second, layout = [], [], [], []
    if reference is not None:
        for n, (args, kwargs) in enumerate(file.calls()):
            case = Case(file, reference, args, kwargs)
            if file.primal is not None:
                plain = Case(file, file.primal, args, kwargs)
                mine, true = plain.run(0, ())[0], plain.run(1, ())[0]
                values += [bad(m, t) for m, t in zip(mine, true)]
                if [m.dtype for m in mine] != [t.dtype for t in true]:
                    values.append(float("inf"))
            outputs = len(case.run(0, ())[0])
            for names in [file.wrt, *((n,) for n in file.wrt)]:
                for used in [None, *range(outputs)]:
                    first.append(case.compare(1, names=names, seed=n, used=used))
                    second.append(case.compare(2, names=names, seed=n, used=used, second=True))
            layout.append(case.compare(1, names=file.wrt, seed=n, change=strided))
            if file.primal is not None:
                layout.append(plain.compare(0, names=(), seed=n, change=strided))
    shown = getattr(file, "show", getattr(file, "check", None))
    shown = None if shown is None else bool(shown())
    return file.TRUTH, [worst(values), worst(first), worst(second), worst(layout)], shown


def text(x):
    return x if isinstance(x, str) else f"{x:.1e}"


def main(part=""):
    wrong = []
    for path in sorted(p for folder in FOLDERS for p in (HERE / folder).glob("*.py")):
        if part not in str(path.relative_to(HERE)):
            continue
        default, rng = torch.get_default_dtype(), torch.get_rng_state()
        torch.manual_seed(0)
        truth, found, shown = report(path)
        torch.set_default_dtype(default)
        torch.set_rng_state(rng)
        limit = 1e-5 if path.stem in ("lut_interp", "mu_law") else 1e-8  # in float32
        if truth["sound"]:
            fine = shown is not False and all(x == "once" or (x != "raises" and x < limit) for x in found)
        else:
            fine = shown is True
            if "flat_everywhere" in truth:
                fine = fine and (found[1] < 1e-8 if truth["flat_everywhere"] else found[1] > 1e-2)
        wrong += [] if fine else [path.stem]
        print(
            f"{path.parent.name:9} {path.stem:20} {'sound' if truth['sound'] else truth['rank']:8}",
            *(f"{text(x):>8}" for x in found),
            f"show {shown}" if shown is not None else "",
            "" if fine else "  <-- DISAGREES WITH ITS TRUTH",
        )
    print("all truths hold" if not wrong else f"disagree: {wrong}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
