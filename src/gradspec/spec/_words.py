"""The words of a contract: which shape, dtype and range an argument may be said to have, and whether a value has it.

Nothing here needs torch: a value is looked at through its `shape` and its `dtype`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: Kinds of dtype, and those that the cases must show before a page may say so. Half precision is not among them: the
#: law `precision` rounds each case.
KINDS: Mapping[str, tuple[str, ...]] = {
    "floating": ("float64", "float32"),
    "complex": ("complex128",),
    "integer": ("int64",),
    "bool": ("bool",),
    "real": ("float64", "float32", "int64"),
    "any": ("float64", "float32", "complex128", "int64", "bool"),
}
_FLOATING = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
_INTEGER = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_COMPLEX = ("complex128", "complex64", "complex32")
_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "floating": _FLOATING,
    "complex": _COMPLEX,
    "integer": _INTEGER,
    "bool": ("bool",),
    "real": (*_FLOATING, *_INTEGER),
    "any": (*_FLOATING, *_INTEGER, *_COMPLEX, "bool"),
}
#: The dtype of the parameters and buffers of a module, which follow the input of a case.
OF_THE_MODULE = "same as the module"
_SYMBOLS = re.compile(r"\((?:(?:\w+|\.\.\.)(?:, (?:\w+|\.\.\.))*,?)?\)")
_SAME, _BROADCASTS = re.compile(r"same as (\w+)"), re.compile(r"broadcasts to (\w+)")
_BOUND = r"-?\d+(?:\.\d+)?|[A-Za-z]\w*"
_SUBJECT = r"(?P<name>[A-Za-z_]\w*)(?:\[(?P<place>\d+)\])?"
_BETWEEN = re.compile(rf"(?P<low>{_BOUND}) (?P<first><=?) {_SUBJECT} (?P<second><=?) (?P<high>{_BOUND})")
_ABOVE = re.compile(rf"{_SUBJECT} (?P<sign>[<>]=?) (?P<bound>{_BOUND})")
_NOT_CHECKED = ", not checked"
_COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def check_words(name: str, shape: str, dtype: str, interval: str) -> None:
    """Refuse words on an argument that are not of the vocabulary.

    Raises:
        ValueError: there are such words; it says which ones are known.
    """
    if shape and not (shape == "any" or _SYMBOLS.fullmatch(shape) or named_in(shape)):
        raise ValueError(
            f"argument {name!r}: the shape {shape!r} is not known: write 'any', sizes such as '(B, D)' or '(2,)', "
            "'same as NAME' or 'broadcasts to NAME', and put other words into text"
        )
    for word in dtype.split(" or ") if dtype else ():
        if word not in _MEMBERS and word not in _MEMBERS["any"] and not _SAME.fullmatch(word) and word != OF_THE_MODULE:
            raise ValueError(
                f"argument {name!r}: the dtype {word!r} is not known: write {', '.join(map(repr, KINDS))}, a dtype of "
                f"torch such as 'int64', 'same as NAME' or {OF_THE_MODULE!r}, with ' or ' between them, and put other "
                "words into text"
            )
    limits(name, interval)


def named_in(words: str) -> tuple[str, ...]:
    """Return the names of the other arguments that the words on a shape or a dtype point to."""
    found = [_SAME.fullmatch(word) or _BROADCASTS.fullmatch(word) for word in words.split(" or ")]
    return tuple(match[1] for match in found if match)


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One end of a range."""

    #: The sign of `value SIGN bound`.
    sign: str
    #: A number, or the name of a size.
    bound: str
    #: Of which element of the argument, along its first dimension; None: of each.
    place: int | None
    #: Whether a call with a value beyond is refused.
    is_checked: bool

    def number(self, sizes: Mapping[str, int]) -> float | None:
        """Return the bound, or None where the size of that name is not known."""
        return sizes.get(self.bound) if self.bound[0].isalpha() else float(self.bound)

    def allows(self, value: float, bound: float) -> bool:
        """Whether a value is within it."""
        return bool(_COMPARED[self.sign](value, bound))

    def end(self, bound: float, *, is_whole: bool) -> float | None:
        """Return the last value within it; None if there is none, as before an open end of real numbers."""
        if self.sign in ("<=", ">="):
            return bound
        return (bound - 1 if self.sign == "<" else bound + 1) if is_whole else None


def limits(name: str, interval: str) -> tuple[Limit, ...]:
    """Return the ends of a range such as `x > 0`, `0 <= x <= 1` or `0 <= x < N, not checked`; none of an empty one.

    Raises:
        ValueError: it is not a range, or is the range of another argument.
    """
    if not interval:
        return ()
    found: list[Limit] = []
    said = interval.removesuffix(_NOT_CHECKED)
    for clause in said.split(", "):
        match = _BETWEEN.fullmatch(clause) or _ABOVE.fullmatch(clause)
        if match is None or match["name"] != name:
            raise ValueError(
                f"argument {name!r}: the range {interval!r} is not known: write '{name} > 0', '0 <= {name} <= 1', "
                f"'0 <= {name} < N' for a size N or '0 <= {name}[1] <= 1' for an element, with ', ' between them, and "
                "', not checked' at the end where a call beyond is not refused"
            )
        place = int(match["place"]) if match["place"] else None
        ends = (
            [(match["first"].replace("<", ">"), match["low"]), (match["second"], match["high"])]
            if "low" in match.groupdict()
            else [(match["sign"], match["bound"])]
        )
        is_checked = said == interval
        found += [Limit(sign=sign, bound=bound, place=place, is_checked=is_checked) for sign, bound in ends]
    return tuple(found)


def dtype_of(value: Any) -> str:
    """Return the dtype of a tensor as "float64"; empty for anything else."""
    return str(value.dtype).removeprefix("torch.") if is_tensor(value) else ""


def is_tensor(value: Any) -> bool:
    """Whether a value has a shape and a dtype."""
    return hasattr(value, "shape") and hasattr(value, "dtype")


def has_dtype(value: Any, dtype: str, values: Mapping[str, Any]) -> bool:
    """Whether a tensor has a dtype that is said in these words; `values` are those of the call, by name."""
    for word in dtype.split(" or "):
        same = _SAME.fullmatch(word)
        if word == OF_THE_MODULE or (same and not is_tensor(values.get(same[1]))):
            return True
        allowed = (dtype_of(values[same[1]]),) if same else _MEMBERS.get(word, (word,))
        if dtype_of(value) in allowed:
            return True
    return False


def wanted(dtype: str) -> Iterator[str]:
    """Yield the dtypes that the cases must show."""
    for word in dtype.split(" or "):
        if word != OF_THE_MODULE and not _SAME.fullmatch(word):
            yield from KINDS.get(word, (word,))


def has_shape(value: Any, shape: str, values: Mapping[str, Any], sizes: dict[str, int]) -> bool:
    """Whether a tensor has a shape that is said in these words; `sizes` are the symbols so far, and get more."""
    got = tuple(value.shape)
    if shape == "any":
        return True
    if same := _SAME.fullmatch(shape):
        return not is_tensor(values.get(same[1])) or got == tuple(values[same[1]].shape)
    if wider := _BROADCASTS.fullmatch(shape):
        other = tuple(getattr(values.get(wider[1]), "shape", got))
        padded = (*(1,) * (len(other) - len(got)), *got)
        return len(padded) == len(other) and all(n in (1, m) for n, m in zip(padded, other, strict=True))
    names = re.findall(r"\w+|\.\.\.", shape)
    if "..." in names:
        at, rest = names.index("..."), len(got) - len(names) + 1
        names[at : at + 1] = ["_"] * rest if rest >= 0 else ["..."]
    return len(names) == len(got) and all(
        name == "_" or size == (int(name) if name.isdecimal() else sizes.setdefault(name, size))
        for name, size in zip(names, got, strict=True)
    )
