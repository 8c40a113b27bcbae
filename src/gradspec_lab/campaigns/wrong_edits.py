"""Edit the backward of sound functions at random, and see whether an audit finds it and what it says first.

`python -m gradspec_lab.campaigns.wrong_edits --count 200 --seed 1` draws edits of the functions of
`tests/reports_blind/sound.py`, which are written as packages write them. An edit that changes no gradient, as plain
torch shows, or that raises, is drawn again. Each is audited twice, with the sound function as its reference and with
nothing but itself; `--record` keeps the counts and the edits whose cause was wrong, and goes on with what it holds.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import inspect
import json
import random
import sys
import tempfile
import textwrap
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from rich.progress import track
from torch import Tensor

from gradspec import audit, read_case
from gradspec._record import write_experiment
from gradspec.findings import findings
from gradspec.spec._sheet import forward_signature

HOME = Path(__file__).parents[3] / "tests" / "reports_blind"
#: Where the edited functions are, as long as this runs.
_FOLDER = tempfile.TemporaryDirectory(prefix="wrong-edits-")
#: After how many draws in vain of a kind no more of it are drawn.
IN_VAIN = 60
#: Nodes of a syntax tree that an edit replaces, by the kind of edit.
Edits = list[tuple[str, Callable[[], None]]]
#: What a person may be told of an edit, beside what the numbers show: kinds of reasons by kinds of edits.
FITTING = {
    "factor": {"term", "sum term"},
    "sign": {"term", "sum term", "conjugate"},
    "dropped term": {
        "wrong saved tensor",
        "term",
        "sum term",
        "reduced cotangent",
        "ignored cotangent",
        "wrong output",
        "missing output",
        "part of the output",
    },
    "dropped factor": {
        "missing mask",
        "term",
        "sum term",
        "cotangent of ones",
        "ignored cotangent",
        "at the output",
        "conjugate",
        "normalised",
        "scaled cotangent",
        "factors of the output",
        "part of the output",
    },
    "transposition": {
        "transposed",
        "transposed argument",
        "transposed saved tensor",
        "wrong saved tensor",
        "not transposed",
    },
    "dimension": {"dimension", "other dimension", "reduced cotangent", "sum term", "dimension 0"},
    "reduction": {"size", "sum term", "dimension", "compared size", "dimension 0"},
    "index": {"shifted", "reversed", "dimension", "repeated index", "not transposed", "permuted", "part of the output"},
    "mask": {"mask", "missing mask", "range"},
    "wrong saved tensor": {"wrong saved tensor", "transposed saved tensor", "at the output", "term", "data"},
    "order of the returned gradients": {"exchanged", "misplaced"},
    "kept by forward": {"wrong saved tensor", "transposed saved tensor", "at the output", "term"},
}


@dataclass(frozen=True)
class Found:
    """What an audit said of one edit."""

    function: str
    kind: str
    line: str
    reference: bool
    found: bool
    #: "right", "absent" or "wrong".
    cause: str
    said: str
    reason: str = ""


@cache
def _module() -> ModuleType:
    """Return the module of the sound functions, under a name that no other has."""
    spec = importlib.util.spec_from_file_location("gradspec_wrong_edits_sound", HOME / "sound.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def functions() -> Iterator[tuple[type, str]]:
    """Yield the sound functions whose gradient is the derivative of forward, each with a call."""
    module = _module()
    seen = set()
    for row in tomllib.loads((HOME / "sound.toml").read_text(encoding="utf-8"))["sound"]:
        if row["kind"] == "Function" and not row["meant"] and row["name"] not in seen:
            seen.add(row["name"])
            yield getattr(module, row["name"]), row["call"]


def edits_of(tree: ast.Module) -> Edits:
    """Return the edits of a backward and of what forward keeps for it, each as what makes it in the tree."""
    methods = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    if "backward" not in methods:
        return []
    backward, keeping = methods["backward"], methods.get("setup_context", methods["forward"])
    found: Edits = []

    def put(kind: str, node: ast.AST, field: str, value: Any, place: int | None = None) -> None:
        def make() -> None:
            if place is None:
                setattr(node, field, value)
            else:
                getattr(node, field)[place] = value

        found.append((kind, make))

    for node in ast.walk(backward):
        for field, value in ast.iter_fields(node):
            for place, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                for kind, other in _others(node, field, child):
                    put(kind, node, field, other, place)
    for node in ast.walk(keeping):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "save_for_backward"
        ):
            for place, kept in enumerate(node.args):
                for name in _names(keeping) if isinstance(kept, ast.Name) else ():
                    if name != kept.id:
                        put("kept by forward", node, "args", ast.Name(name, ast.Load()), place)
    return found


def _names(method: ast.FunctionDef) -> list[str]:
    """Return the names that a method gives, but for its context."""
    stored = [n.id for n in ast.walk(method) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return list(dict.fromkeys([*(one.arg for one in method.args.args[1:]), *stored]))


def _others(parent: ast.AST, field: str, node: Any) -> Iterator[tuple[str, ast.AST]]:
    """Yield what could stand in the place of a node, with the kind of edit."""
    is_returned = isinstance(parent, ast.Return) or (isinstance(parent, ast.Tuple) and field == "elts")
    if (
        is_returned
        and isinstance(node, ast.BinOp | ast.Call | ast.Name)
        and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    ):
        for factor in (2.0, 0.5, 0.75):
            yield "factor", ast.BinOp(left=ast.Constant(factor), op=ast.Mult(), right=node)
        yield "sign", ast.UnaryOp(op=ast.USub(), operand=node)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Add | ast.Sub):
            yield "dropped term", node.left
            yield "dropped term", node.right if isinstance(node.op, ast.Add) else ast.UnaryOp(ast.USub(), node.right)
            yield "sign", ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right)
        if isinstance(node.op, ast.Mult):
            yield "dropped factor", node.left
            yield "dropped factor", node.right
        if isinstance(node.op, ast.Div):
            yield "dropped factor", node.left
        if isinstance(node.op, ast.MatMult):
            for side in ("left", "right"):
                turned = deepcopy(node)
                setattr(turned, side, ast.Attribute(getattr(node, side), "mT", ast.Load()))
                yield "transposition", turned
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield "transposition", node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from _other_calls(node, node.func)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        opposite = {ast.Gt: ast.Lt, ast.Lt: ast.Gt, ast.GtE: ast.Lt, ast.LtE: ast.Gt}.get(type(node.ops[0]))
        if opposite is not None:
            yield "mask", ast.Compare(node.left, [opposite()], node.comparators)
    if isinstance(node, ast.Slice) and isinstance(node.lower, ast.Constant) and isinstance(node.lower.value, int):
        yield "index", ast.Slice(ast.Constant(node.lower.value - 1), node.upper, node.step)
    if isinstance(node, ast.Tuple) and len(node.elts) > 1:
        loads = isinstance(node.ctx, ast.Load)
        names = [isinstance(one, ast.Name) for one in node.elts]
        for k in range(len(node.elts) - 1):
            swapped = [*node.elts[:k], node.elts[k + 1], node.elts[k], *node.elts[k + 2 :]]
            if loads and isinstance(parent, ast.Return):
                yield "order of the returned gradients", ast.Tuple(swapped, node.ctx)
            elif not loads and isinstance(parent, ast.Assign) and all(names) and _is_saved(parent.value):
                yield "wrong saved tensor", ast.Tuple(swapped, node.ctx)


def _other_calls(node: ast.Call, func: ast.Attribute) -> Iterator[tuple[str, ast.AST]]:
    if func.attr in ("sum", "mean"):
        renamed = ast.Attribute(func.value, "mean" if func.attr == "sum" else "sum", func.ctx)
        yield "reduction", ast.Call(renamed, node.args, node.keywords)
    if func.attr in ("sum", "mean", "cumsum", "flip", "softmax") and node.args:
        dim = node.args[0]
        for other in (0, 1, -1):
            if ast.unparse(dim) != str(other) and isinstance(dim, ast.Constant | ast.UnaryOp):
                yield "dimension", ast.Call(func, [ast.Constant(other), *node.args[1:]], node.keywords)
    if func.attr == "flip":
        yield "index", func.value
    if func.attr in ("masked_fill", "where", "mul") and not isinstance(func.value, ast.Name):
        yield "mask", func.value
    if func.attr == "masked_fill" and isinstance(func.value, ast.Name):
        yield "mask", func.value


def _is_saved(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("saved_tensors", "saved_variables")


def _tree_of(cls: type) -> ast.Module:
    return ast.parse(textwrap.dedent(inspect.getsource(cls)))


def edited(cls: type, kind: str, rng: random.Random) -> tuple[str, type]:
    """Return the line that a random edit of a kind makes, and the edited class."""
    tree = _tree_of(cls)
    before = ast.unparse(tree).splitlines()
    rng.choice([make for name, make in edits_of(tree) if name == kind])()
    after = ast.unparse(ast.fix_missing_locations(tree))
    scope = dict(vars(sys.modules[cls.__module__]))
    path = Path(_FOLDER.name) / f"{cls.__name__}_{len(list(Path(_FOLDER.name).iterdir()))}.py"
    path.write_text(after, encoding="utf-8")  # an audit reads the source, as of any function
    exec(compile(after, str(path), "exec"), scope)
    line = next((new.strip() for old, new in zip(before, after.splitlines(), strict=False) if old != new), "")
    return line, scope[cls.__name__]


def gradients(cls: Any, call: str, of: int | None = None) -> dict[int, Tensor]:
    """Return the gradients of a call, by the place of the argument, for a cotangent that is the same each time.

    With `of`, the cotangents of all other outputs are zero.
    """
    args = [a.detach().requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a for a in read_case(call).args]
    leaves = {k: a for k, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad}
    y = cls.apply(*args)
    y = [t for t in (y if isinstance(y, tuple) else (y,)) if isinstance(t, Tensor) and t.requires_grad]
    draw = torch.Generator().manual_seed(7)
    v = [torch.randn(t.shape, generator=draw, dtype=torch.float64).to(t.dtype) for t in y]
    v = [w if of in (None, k) else torch.zeros_like(w) for k, w in enumerate(v)]
    got = torch.autograd.grad(y, list(leaves.values()), v, allow_unused=True)
    return {k: torch.zeros_like(a) if g is None else g for (k, a), g in zip(leaves.items(), got, strict=True)}


def draws(count: int, seed: int) -> Iterator[tuple[type, str, str, str, type]]:
    """Yield edits that change a gradient: the function, its call, the kind, the line, and the edited function.

    Each kind is as likely as any other, until no more of it are found.
    """
    rng, seen = random.Random(seed), set[tuple[str, str]]()
    having: dict[str, list[tuple[type, str]]] = {}
    for cls, call in functions():
        for kind in sorted({kind for kind, _ in edits_of(_tree_of(cls))}):
            having.setdefault(kind, []).append((cls, call))
    in_vain = Counter[str]()
    while len(seen) < count and having:
        kind = rng.choice(sorted(having))
        cls, call = rng.choice(having[kind])
        made = _that_differs(cls, call, kind, rng)
        if made is None or (cls.__name__, made[0]) in seen:
            in_vain[kind] += 1
            if in_vain[kind] > IN_VAIN:  # there are few of this kind
                del having[kind]
            continue
        seen.add((cls.__name__, made[0]))
        yield cls, call, kind, *made


def _that_differs(cls: type, call: str, kind: str, rng: random.Random) -> tuple[str, type] | None:
    """Return a random edit that changes a gradient; None if it changes none, or raises."""
    try:
        line, made = edited(cls, kind, rng)
        before, after = gradients(cls, call), gradients(made, call)
    except Exception:
        return None
    if not all(bool(g.isfinite().all()) for g in after.values()):
        return None
    is_same = all(torch.allclose(before[k], after[k], rtol=1e-6, atol=1e-9) for k in before)
    return None if is_same else (line, made)


def _says_where_only(reason: Any) -> bool:
    """Whether a reason says which elements, arguments or calls are wrong, and not how."""
    if reason.kind == "of arguments":
        return "wrong" in reason.evidence.get("arguments", {"": "wrong"}).values()  # else it says which are right
    return reason.kind in ("range", "option", "one slice") or (reason.kind == "places" and "places" in reason.evidence)


def _is_right(kind: str, cls: type, call: str, made: type, reason: Any) -> bool:
    """Whether a reason says what the edit was, or what the numbers show of it."""
    if reason.kind in FITTING[kind] or reason.kind == "repair":  # which an experiment has made right
        return True
    true, got = gradients(cls, call), gradients(made, call)
    names = dict(enumerate(forward_signature(cls).parameters))
    pairs = {names.get(k, str(k)): (true[k], got[k]) for k in true}
    if reason.kind == "of arguments":
        arguments = reason.evidence.get("arguments", {})
        return all(_fits(how, *pairs[name]) for name, how in arguments.items() if name in pairs)
    if reason.kind == "wrong output":
        named = int(reason.words.split("output ")[1].split(",")[0])
        return [k for k in range(_outputs(cls, call)) if _differ(cls, made, call, k)] == [named]
    if reason.kind == "exchanged":
        return any(
            torch.allclose(g, t)
            for a, (_, g) in pairs.items()
            for b, (t, _) in pairs.items()
            if a != b and g.shape == t.shape
        )
    wrong = {name: pair for name, pair in pairs.items() if not torch.allclose(*pair, rtol=1e-6, atol=1e-9)}
    return any(_shows(reason, *pair) for pair in wrong.values())


def _outputs(cls: Any, call: str) -> int:
    y = cls.apply(*read_case(call).args)
    return len(y) if isinstance(y, tuple) else 1


def _differ(cls: type, made: type, call: str, of: int) -> bool:
    true, got = gradients(cls, call, of), gradients(made, call, of)
    return any(not torch.allclose(true[k], got[k], rtol=1e-6, atol=1e-9) for k in true)


def _fits(how: str, true: Tensor, got: Tensor) -> bool:
    """Whether a gradient is wrong as the words of an audit have it."""
    if how == "right":
        return torch.allclose(true, got, rtol=1e-6, atol=1e-9)
    if how.startswith("off by the factor "):
        return torch.allclose(true * float(how.split()[4].rstrip(",")), got, rtol=1e-2, atol=1e-9)
    if "sign" in how:
        return torch.allclose(-true, got)
    if how == "zero":
        return torch.allclose(got, torch.zeros_like(got), atol=1e-9)
    return not torch.allclose(true, got, rtol=1e-6, atol=1e-9)  # "wrong", or nothing


def _shows(reason: Any, true: Tensor, got: Tensor) -> bool:
    """Whether the numbers of a gradient show what a reason says of it."""
    close = torch.isclose(got, true, rtol=1e-6, atol=1e-9)
    match reason.kind:
        case "factor":
            there = got != 0
            return torch.allclose(got[there], true[there] * complex(reason.evidence["factor"]).real, rtol=1e-6)
        case "sign":
            return torch.allclose(got[got != 0], -true[got != 0])
        case "zero" | "none":
            return not bool(got.any())
        case "transposed":
            return true.ndim > 1 and any(
                torch.allclose(got, true.transpose(a, b)) for a, b in _pairs(true) if true.shape[a] == true.shape[b]
            )
        case "places":
            return torch.allclose(got.flatten().sort().values, true.flatten().sort().values)
        case "shifted" | "reversed":
            return torch.allclose(got.abs().flatten().sort().values, true.abs().flatten().sort().values) or bool(
                close.any()
            )
    return False


def _pairs(t: Tensor) -> list[tuple[int, int]]:
    return [(a, b) for a in range(t.ndim) for b in range(a)]


def judged(cls: type, call: str, kind: str, line: str, made: type, *, reference: bool) -> Found:
    """Return what an audit says of an edit."""
    how: Any = {"reference": cls.apply} if reference else {}  # type: ignore[attr-defined]
    report = audit(made, [call], laws=["primal", "vjp", "surrogate"], jobs=1, **how).report
    first = next(
        (one for one in findings(report) if one.verdict.law in ("vjp", "surrogate") and one.rank == "wrong"), None
    )
    about = {"function": cls.__name__, "kind": kind, "line": line, "reference": reference}
    if first is None:
        return Found(**about, found=False, cause="absent", said="")
    reason = first.verdict.finding.reason
    if reason is None or _says_where_only(reason):
        cause = "absent"
    else:
        cause = "right" if _is_right(kind, cls, call, made, reason) else "wrong"
    named = "" if reason is None else reason.kind
    return Found(**about, found=True, cause=cause, said=first.verdict.finding.likely, reason=named)


def counted(results: list[Found]) -> dict[str, Any]:
    """Return how many edits were found, and what the first cause was, in all and by kind."""

    def of(some: list[Found]) -> dict[str, int]:
        causes = Counter(one.cause for one in some if one.found)
        missed = sum(not one.found for one in some)
        return {"edits": len(some), "found": len(some) - missed} | {c: causes[c] for c in ("right", "absent", "wrong")}

    return of(results) | {"kinds": [{"kind": k} | of([one for one in results if one.kind == k]) for k in FITTING]}


def _row(one: Found) -> dict[str, Any]:
    return {key: value for key, value in asdict(one).items() if key not in ("found", "reason")}


def main() -> None:
    """Run the campaign, print its counts and keep them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="how many edits are drawn")
    parser.add_argument("--seed", type=int, default=1, help="of the draws")
    parser.add_argument("--out", type=Path, help="a file of JSON lines that is written as it goes, and gone on with")
    parser.add_argument("--record", type=Path, help="where the counts are kept")
    given = parser.parse_args()
    torch.set_num_threads(1)
    lines = given.out.read_text(encoding="utf-8").splitlines() if given.out and given.out.exists() else []
    done = {(one.function, one.line, one.reference): one for one in (Found(**json.loads(line)) for line in lines)}
    results: list[Found] = []
    for cls, call, kind, line, made in track(list(draws(given.count, given.seed)), description="edits"):
        for reference in (True, False):
            key = (cls.__name__, line, reference)
            if (one := done.get(key)) is None:
                one = judged(cls, call, kind, line, made, reference=reference)
                if given.out:
                    with given.out.open("a", encoding="utf-8") as file:
                        file.write(f"{json.dumps(asdict(one))}\n")
            results.append(one)
    modes = {
        "with_reference": counted([one for one in results if one.reference]),
        "by_itself": counted([one for one in results if not one.reference]),
    }
    for mode, counts in modes.items():
        print(mode, *(f"{what} {counts[what]}" for what in ("edits", "found", "right", "absent", "wrong")))
    if given.record:
        functions_drawn = len({one.function for one in results})
        about = {"name": "wrong edits", "what": "random wrong edits of sound functions, under an audit"}
        # The summary is kept small: what was said has the reason, and its cause whether it was found.
        shown = [_row(one) for one in results if one.cause == "wrong" or not one.found]
        content = {**about, "functions": functions_drawn, **modes, "exceptions": shown}
        write_experiment(
            content,
            given.record,
            seed=given.seed,
            command=f"python -m {__spec__.name} --count {given.count} --seed {given.seed}",
        )


if __name__ == "__main__":
    main()
