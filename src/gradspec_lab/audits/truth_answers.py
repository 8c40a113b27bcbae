"""The answers of a function's measured truth: all is well, wrong silently, or refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gradspec_lab.audits.truth_table import DELIBERATE

#: How a measured answer begins that is wrong without a word.
SILENT = ("wrong", "nan", "missing", "ignored", "differs", "no:", "another shape", "untracked")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a question's measurement says."""

    text: str
    #: Something is wrong, and nothing says so.
    silent: bool
    #: A call raises.
    refused: bool
    #: It is meant so, and `DELIBERATE` says why.
    deliberate: bool


@dataclass(frozen=True, kw_only=True)
class Question:
    """Where its answer stands in a row of the truth, and how an audit speaks of it."""

    #: Returns the measured answers, a word or more each.
    read: Callable[[Mapping[str, Any]], list[str]]
    #: The laws whose failure says it.
    laws: tuple[str, ...]
    #: What a remark that says it must match.
    remark: str = ""
    #: Whether a silent answer is a defect to be found; else it only confirms findings.
    counts: bool = True


def answers(row: Mapping[str, Any]) -> dict[str, Answer]:
    """Return the answer to each question that the truth of a function has one to."""
    if row["plain"] != "works":
        return {"plain": Answer(text=row["plain"], silent=False, refused=True, deliberate=False)}
    found = {}
    for name, question in QUESTIONS.items():
        texts = question.read(row)
        wrong = [t for t in texts if t.startswith(SILENT)]
        raised = [t for t in texts if t.startswith("raises")]
        found[name] = Answer(
            text="; ".join(wrong + raised) or ", ".join(dict.fromkeys(texts)),
            silent=bool(wrong),
            refused=bool(raised),
            deliberate=not question.counts or name in DELIBERATE.get(row["name"], {}),
        )
    return found


def _texts(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [text for v in value.values() for text in _texts(v)]
    return [str(value)]


def _at(*path: str) -> Callable[[Mapping[str, Any]], list[str]]:
    def read(row: Mapping[str, Any]) -> list[str]:
        value: Any = row
        for key in path:
            value = value.get(key, "not measured") if isinstance(value, Mapping) else value
        return _texts(value)

    return read


def _only(read: Callable[[Mapping[str, Any]], list[str]], start: str, *, out: bool) -> Callable[..., list[str]]:
    """Return the answers that begin with a word, or those that do not."""
    return lambda row: [t for t in read(row) if t.startswith(start) != out] or ["none"]


def _writes(part: str) -> Callable[[Mapping[str, Any]], list[str]]:
    def read(row: Mapping[str, Any]) -> list[str]:
        told = row["writes"] if isinstance(row["writes"], Mapping) else {}
        return [f"wrong: writes to {n}, {t}" for n, t in told.items() if n.startswith("cotangent") == (part == "v")]

    return read


def _dtype(row: Mapping[str, Any], *, raw: bool) -> list[str]:
    found = []
    for dtype in ("float64", "float32"):
        facts = row["dtypes"].get(dtype, {})
        if "call" in facts:
            found.append(facts["call"])
        elif raw and facts["raw gradients"] != "exact":
            found.append(f"wrong: {facts['raw gradients']}")
        elif not raw and facts["outputs"] not in ("", dtype):
            found.append(f"wrong: {facts['outputs']} for {dtype}")
    return found


def _off(row: Mapping[str, Any]) -> list[str]:
    """Return the dtypes in which values or gradients are far from those in float64."""
    if any(said != "no" for said in row["draws"].values()):
        return ["not measured: another dtype draws another noise"]
    found = []
    for dtype, limit in (("float32", 1e-3), ("bfloat16", 0.2), ("float16", 0.05)):
        facts = row["dtypes"].get(dtype, {})
        if "call" in facts:
            found.append(facts["call"])
        elif not float(facts["off by"]) <= limit:
            found.append(f"wrong: off by {facts['off by']} in {dtype}")
    return found


def _drawn(row: Mapping[str, Any]) -> list[str]:
    said = row["draws"].get("backward", "no")
    return ["no noise" if said == "no" else f"wrong: backward draws, {said}"]


def _transform(*names: str) -> Callable[[Mapping[str, Any]], list[str]]:
    return lambda row: [row["transforms"][name] for name in names]


_FIRST, _SECOND = _at("first"), _at("second")
#: What the truth is asked. A law may answer more than one.
QUESTIONS: Mapping[str, Question] = {
    "plain": Question(read=_at("plain"), laws=("global_state",)),
    "first": Question(read=_only(_FIRST, "ignored", out=True), laws=("surrogate", "vjp")),
    "ignored argument": Question(
        read=_only(_FIRST, "ignored", out=False),
        laws=(),
        remark=r"The output changes with `\w+`, and backward returns no gradient for it",
    ),
    "second": Question(read=_SECOND, laws=("second_order", "forward_over_reverse", "first_order_only")),
    "penalty": Question(read=_at("penalty"), laws=("second_order", "first_order_only"), counts=False),
    "linear": Question(read=_at("linear"), laws=("cotangent_linearity", "undefined_cotangent")),
    "writes to an argument": Question(
        read=_writes("x"), laws=("inputs_untouched", "declared_writes"), remark=r"The function writes to an argument"
    ),
    "writes to a cotangent": Question(read=_writes("v"), laws=("cotangents_untouched", "declared_writes")),
    "shared memory": Question(read=_at("shares"), laws=("aliasing",), remark=r"The output shares memory with `\w+`"),
    "noise in backward": Question(
        read=_drawn, laws=("declared_draws", "retained_graph"), remark=r"Backward draws noise"
    ),
    "tensors on ctx": Question(
        read=lambda row: [f"wrong: {name} on ctx" for name in row["kept"]["ctx"]], laws=("ctx_clean",), counts=False
    ),
    "leak": Question(read=lambda row: [] if row["kept"]["freed"] else ["wrong: not freed"], laws=("freed",)),
    "layout": Question(read=_at("layout"), laws=("layout",)),
    "cotangent layout": Question(read=_at("cotangent layout"), laws=("cotangent_layout",)),
    "retained graph": Question(read=_at("retained"), laws=("retained_graph",)),
    "one gradient alone": Question(read=_at("alone"), laws=("needs_input_grad", "undefined_cotangent")),
    "dtype of the output": Question(
        read=lambda row: _dtype(row, raw=False),
        remark=r"The output is \w+ where",
        laws=("precision", "raw_returns"),
    ),
    "dtype of the gradient": Question(read=lambda row: _dtype(row, raw=True), laws=("raw_returns", "precision")),
    "precision": Question(read=_off, laws=("precision",)),
    "empty": Question(read=_at("edges", "empty"), laws=("empty",)),
    "0-d": Question(read=_at("edges", "0-d"), laws=("scalar",)),
    "checkpoint": Question(read=_at("checkpoint"), laws=("checkpoint",)),
    "autocast": Question(read=_at("autocast"), laws=("autocast",)),
    "batched cotangent": Question(read=_at("batched"), laws=("batched_cotangent",)),
    "func.grad": Question(read=_transform("func.grad"), laws=("func_grad",)),
    "vmap": Question(read=_transform("vmap"), laws=("vmap",)),
    "func.jvp": Question(read=_transform("func.jvp"), laws=("adjoint", "jvp")),
    "compile": Question(read=_transform("compile"), laws=("compile",)),
    "compile with breaks": Question(read=_transform("compile with breaks"), laws=("compile",)),
    "compiled func.grad": Question(read=_transform("compiled func.grad"), laws=("compile_grad",)),
    "compiled vmap": Question(read=_transform("compiled vmap"), laws=("compile_vmap",)),
    "compiled func.jvp": Question(read=_transform("compiled func.jvp"), laws=("compile_jvp",)),
    "export": Question(read=_at("exports"), laws=("export",)),
    "fake": Question(read=_transform("fake"), laws=("fake",)),
}
