"""A call written as text, `(randn(2, 3), 0.5)`, read without `eval`: literals, and tensors by recipe."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gradspec._audit._device import on_device
from gradspec.spec import Case

#: Tensors by shape. `seed=` chooses other numbers, `dtype=` another type; both are keywords of every recipe.
_BY_SHAPE: dict[str, Callable[..., torch.Tensor]] = {
    "randn": torch.randn,
    "rand": torch.rand,
    "zeros": torch.zeros,
    "ones": torch.ones,
}
_DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in (
        *("float64", "float32", "float16", "bfloat16", "complex128", "complex64"),
        *("int64", "int32", "int16", "int8", "uint8", "bool", "float8_e4m3fn", "float8_e5m2"),
    )
}
_RECIPES = (*_BY_SHAPE, "full", "eye", "arange", "linspace", "randint", "tensor")
#: What may be done with a tensor: another layout, another range or order of numbers.
_METHODS = (
    *("transpose", "permute", "t", "expand", "contiguous", "reshape", "view", "unsqueeze", "flip", "triu", "tril"),
    *("abs", "softmax", "requires_grad_", "clone", "conj", "clamp", "round", "norm", "cumsum"),
    *("to_sparse", "to_sparse_csr"),
)
_ATTRIBUTES = ("T", "mT", "mH")
_FUNCTIONS = ("abs", "diag", "exp", "sqrt", "sin", "cos", "tanh", "sigmoid", "softmax", "complex")
#: Functions of a list of tensors.
_OF_LISTS = ("cat", "stack")
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
#: Of a tensor and something else: a power of two numbers may take for ever.
_OF_TENSORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {ast.Pow: operator.pow, ast.MatMult: operator.matmul}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class RecipeError(ValueError):
    """A text that is not a call; the message is one line for the user."""


def read_case(text: str, *, name: str = "", seed: int = 0, device: str = "cpu") -> Case:
    """Return the call that a text writes down.

    Args:
        text: the arguments in parentheses, as in a call: `(randn(2, 3), 0.5, training=False)`. An argument is a
            number, a string, True, False, None, a list, tuple or dict of arguments, or a tensor by recipe:
            `randn(2, 3)`, `rand(...)`, `zeros(...)`, `ones(...)`, `full((2, 3), 0.5)`, `arange(6)`,
            `linspace(0, 1, 6)`, `eye(3)`, `randint(0, 10, (4,))`, `tensor([1.0, 2.0])`, each with `dtype=float32`
            (float64 unless told; integers for `arange` and `randint`), `seed=1`, `requires_grad=True`. `torch.` may
            stand before a recipe and a dtype. Of a tensor there may be multiples and sums, `3 * randn(4) - 1`, masks,
            `randn(4, 3) > 0`, parts, `randn(4, 6)[:, ::2]`, other layouts, `randn(4, 3).T`, `ones(3).expand(4, 3)`,
            `eye(3).to_sparse()`, and functions, `cos(arange(6.0))`, `cat([randn(4), tensor([1.0])])`. What has a
            name may stand again behind it: `((a := randn(3, 3)) @ a.T + eye(3), a)`. A generator is
            `Generator().manual_seed(3)`.
            `@calls/case-1.safetensors` is the call that `gradspec watch --save-cases` has kept in this file.
        name: the case's name; the text itself unless given.
        seed: of the random recipes that name none; each draws numbers of its own.
        device: where the tensors are, `cuda` or `cuda:1`; a tensor has the same numbers on every device. Those of a
            kept call are where they were in the program, if that device is here.

    Raises:
        ValueError: anything else is in the text.

    Example:
        >>> case = read_case("(ones(2), 0.5)")
        >>> case.args
        (tensor([1., 1.], dtype=torch.float64), 0.5)
    """
    case = _read(text, name, seed)
    return case if device == "cpu" else on_device(case, device)


def _read(text: str, name: str, seed: int) -> Case:
    written = text.strip()
    if written.startswith("@"):
        return _of_file(written, name)
    try:
        node = _parsed(written).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise RecipeError(f"{text!r} is not a call: write the arguments as in (randn(2, 3), 0.5)") from None
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_"):
        raise RecipeError(f"{text!r} is more than one call: write the arguments as in (randn(2, 3), 0.5)")
    reader = _Reader(text, seed)
    args = tuple(reader.value(argument) for argument in node.args)
    kwargs = {reader.keyword(keyword): reader.value(keyword.value) for keyword in node.keywords}
    return Case(name=name or " ".join(written.split()), args=args, kwargs=kwargs)


def in_dtype(text: str, dtype: str) -> str:
    """Return a call with its real floating tensors in another dtype, `float32`; the text is one that `read_case` reads.

    Example:
        >>> in_dtype("(ones(2), tensor([1]))", "float32")
        '(ones(2, dtype=float32), tensor([1]))'
    """
    call = call_of(text)
    for node in ast.walk(call):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _RECIPES):
            continue
        if _Reader(text, 0).value(node).is_floating_point():
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "dtype"]
            node.keywords.append(ast.keyword(arg="dtype", value=ast.Name(id=dtype)))
    return text_of(call)


def call_of(text: str) -> ast.Call:
    """Return the tree of a call, to be changed; the text is one that `read_case` reads."""
    node = _parsed(text.strip()).body
    assert isinstance(node, ast.Call), f"{text!r} is not a call"
    return node


def text_of(call: ast.Call) -> str:
    """Return the text of a call, as `read_case` reads it.

    Example:
        >>> text_of(call_of("(ones(2,), f=1)"))
        '(ones(2), f=1)'
    """
    return ast.unparse(call)[1:]


def _parsed(call: str) -> ast.Expression:
    """Return the call of `_`, with `torch.randn` and `torch.float32` as `randn` and `float32`."""
    tree = ast.parse(f"_{call}" if call.startswith("(") else f"_({call})", mode="eval")
    bare: ast.Expression = _WithoutTorch().visit(tree)
    return bare


class _WithoutTorch(ast.NodeTransformer):
    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        match node:
            case ast.Attribute(value=ast.Name(id="torch"), attr=name) if name != "torch":
                return ast.Name(id=name, ctx=ast.Load())
        self.generic_visit(node)
        return node


def _of_file(text: str, name: str) -> Case:
    try:
        from gradspec._audit._saved_call import CallError, load_call
    except ImportError:
        raise RecipeError(f"{text} needs the package safetensors: pip install safetensors") from None
    try:
        args, kwargs, _ = load_call(Path(text[1:]))
    except CallError as error:
        raise RecipeError(str(error)) from None
    return Case(name=name or text, args=args, kwargs=kwargs)


def _is_generator(node: ast.expr) -> bool:
    return ast.unparse(node) == "Generator()"


class _Reader:
    def __init__(self, text: str, seed: int) -> None:
        self._text = text
        self._seed = seed
        self._drawn = 0
        #: What `:=` has named so far.
        self._named: dict[str, Any] = {}

    def keyword(self, keyword: ast.keyword) -> str:
        if keyword.arg is None:
            raise self._refused("**", "name each argument")
        return keyword.arg

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=bool() | int() | float() | complex() | str() | None):
                return node.value
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._number(operand, f"-{ast.unparse(operand)}")
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _ARITHMETIC:
                a, b = (self._number(side, ast.unparse(node)) for side in (left, right))
                return self._of_torch(ast.unparse(node), lambda: _ARITHMETIC[type(sign)](a, b))
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OF_TENSORS:
                a, b = self._tensor_of(left, node), self._number(right, ast.unparse(node))
                return self._of_torch(ast.unparse(node), lambda: _OF_TENSORS[type(sign)](a, b))
            case ast.Compare(left=left, ops=[order], comparators=[right]) if type(order) in _COMPARISONS:
                a, b = (self._number(side, ast.unparse(node)) for side in (left, right))
                return self._of_torch(ast.unparse(node), lambda: _COMPARISONS[type(order)](a, b))
            case ast.NamedExpr(target=ast.Name(id=name), value=meant):
                self._named[name] = self.value(meant)
                return self._named[name]
            case ast.Name(id=name) if name in self._named:
                return self._named[name]
            case ast.Subscript(value=whole, slice=where):
                tensor, place = self._tensor_of(whole, node), self._place(where)
                return self._of_torch(ast.unparse(node), lambda: tensor[place])
            case ast.Attribute(value=whole, attr=name) if name in _ATTRIBUTES:
                tensor = self._tensor_of(whole, node)
                return self._of_torch(ast.unparse(node), lambda: getattr(tensor, name))
            case ast.Call(func=ast.Name(id=name), args=[first, *rest], keywords=[]) if name in _FUNCTIONS:
                tensor, given = self._tensor_of(first, node), [self.value(arg) for arg in rest]
                return self._of_torch(ast.unparse(node), lambda: getattr(torch, name)(tensor, *given))
            case ast.Call(func=ast.Name(id=name), args=[ast.List(elts=parts), *rest], keywords=[]) if name in _OF_LISTS:
                tensors, given = [self._tensor_of(one, node) for one in parts], [self.value(arg) for arg in rest]
                return self._of_torch(ast.unparse(node), lambda: getattr(torch, name)(tensors, *given))
            case ast.Call(func=ast.Attribute(value=whole, attr=name), args=args, keywords=keywords) if name in _METHODS:
                tensor, given = self._tensor_of(whole, node), [self.value(arg) for arg in args]
                named = {self.keyword(k): self.value(k.value) for k in keywords}
                return self._of_torch(ast.unparse(node), lambda: getattr(tensor, name)(*given, **named))
            case ast.Call(func=ast.Attribute(value=made, attr="manual_seed"), args=[seed]) if _is_generator(made):
                return torch.Generator().manual_seed(int(self._number(seed, ast.unparse(node))))
            case ast.Tuple(elts=elements):
                return tuple(map(self.value, elements))
            case ast.List(elts=elements):
                return [self.value(element) for element in elements]
            case ast.Dict(keys=keys, values=values) if None not in keys:
                return {self.value(key): self.value(value) for key, value in zip(keys, values, strict=True) if key}
            case ast.Name(id="inf" | "nan" as number):
                return float(number)
            case ast.Call(func=ast.Name(id=recipe), args=args, keywords=keywords) if recipe in _RECIPES:
                return self._tensor(recipe, args, {self.keyword(k): k.value for k in keywords})
        known = f"an argument is a literal or one of {', '.join(_RECIPES)}"
        raise self._refused(ast.unparse(node), known)

    def _number(self, node: ast.expr, written: str) -> Any:
        """Return a number, or a tensor of them."""
        value = self.value(node)
        if isinstance(value, bool) or not isinstance(value, int | float | complex | torch.Tensor):
            raise self._refused(written, "only numbers and tensors have a sign, sums, multiples and an order")
        return value

    def _tensor_of(self, node: ast.expr, whole: ast.expr) -> torch.Tensor:
        if not isinstance(value := self.value(node), torch.Tensor):
            raise self._refused(ast.unparse(whole), f"{ast.unparse(node)} is not a tensor")
        return value

    def _place(self, node: ast.expr) -> Any:
        match node:
            case ast.Slice(lower=lower, upper=upper, step=step):
                return slice(*(None if part is None else self.value(part) for part in (lower, upper, step)))
            case ast.Tuple(elts=elements):
                return tuple(map(self._place, elements))
        return self.value(node)

    def _of_torch(self, written: str, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except (TypeError, ValueError, RuntimeError, IndexError, ArithmeticError) as error:
            why = " ".join(str(error).split())[:120]
            raise self._refused(written, f"torch says: {why}") from None

    def _tensor(self, recipe: str, args: list[ast.expr], options: dict[str, ast.expr]) -> torch.Tensor:
        dtype, seed = self._dtype(options.pop("dtype", None)), options.pop("seed", None)
        is_marked = self._is_true(options.pop("requires_grad", None))
        if options:
            known = f"the keywords of {recipe} are dtype, seed and requires_grad"
            where = "; the option --device says where all tensors are" if "device" in options else ""
            raise self._refused(f"{next(iter(options))}=", known + where)
        given = [self.value(arg) for arg in args]
        self._drawn += 1  # two recipes without a seed are two different tensors

        def make() -> torch.Tensor:
            chosen = self._seed + self._drawn if seed is None else int(self._number(seed, f"seed={ast.unparse(seed)}"))
            generator = torch.Generator().manual_seed(chosen)
            return _made(recipe, given, dtype, generator).requires_grad_(is_marked)

        written = [*map(ast.unparse, args), *([f"seed={ast.unparse(seed)}"] if seed else [])]
        made: torch.Tensor = self._of_torch(f"{recipe}({', '.join(written)})", make)
        return made

    def _dtype(self, node: ast.expr | None) -> torch.dtype | None:
        if node is None:
            return None
        name = ast.unparse(node)
        if name not in _DTYPES:
            raise self._refused(f"dtype={name}", f"the dtypes are {', '.join(_DTYPES)}")
        return _DTYPES[name]

    def _is_true(self, node: ast.expr | None) -> bool:
        if node is None:
            return False
        if not isinstance(value := self.value(node), bool):
            raise self._refused(f"requires_grad={ast.unparse(node)}", "it is True or False")
        return value

    def _refused(self, part: str, remedy: str) -> RecipeError:
        return RecipeError(f"{part!r} cannot stand in the case {self._text!r}: {remedy}")


def _made(recipe: str, given: list[Any], dtype: torch.dtype | None, generator: torch.Generator) -> torch.Tensor:
    if recipe == "tensor":
        (data,) = given
        return torch.tensor(data, dtype=dtype or _double(torch.tensor(data).dtype))
    if recipe == "arange":
        return torch.arange(*given, dtype=dtype or _double(torch.arange(*given).dtype))
    if recipe == "randint":
        return torch.randint(*given, generator=generator, dtype=dtype or torch.int64)
    if recipe in ("full", "eye", "linspace"):
        made: torch.Tensor = getattr(torch, recipe)(*given, dtype=dtype or torch.float64)
        return made
    if recipe in ("randn", "rand"):
        dtype = dtype or torch.float64
        # Drawn in double precision and rounded: a case in another dtype has the same numbers.
        double = torch.complex128 if dtype.is_complex else torch.float64
        return _BY_SHAPE[recipe](*given, generator=generator, dtype=double).to(dtype)
    return _BY_SHAPE[recipe](*given, dtype=dtype or torch.float64)


def _double(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which numbers are kept as they are written: that of Python's for those with a point."""
    return torch.float64 if dtype.is_floating_point else dtype
