"""Cells: which verdicts of a record are still valid for what would be measured today."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradspec._record._key import combined
from gradspec._record._provenance import same_environment
from gradspec._record._source import Source

#: A spec, a law and a case of it, by name.
Cell = tuple[str, str, str]
#: What a law says where it is violated: other laws are asked then whether they explain it.
_EXPLAINED = ("broken", "waived", "not_promised")
#: What a profile says of itself beside how hard it is.
_NOT_HOW_HARD = ("name", "laws", "time_limit")


def how_hard(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a profile and a seed decides a verdict."""
    profile = dict(provenance.get("profile") or {})
    return {"seed": provenance.get("seed"), **{k: v for k, v in profile.items() if k not in _NOT_HOW_HARD}}


def cell_key(
    cell: Cell, kind: str, law: Mapping[str, Any], sources: Mapping[str, Source], how: Mapping[str, Any], *, status: str
) -> str:
    """Return the key of a cell; empty where something that it depends on is not known.

    Args:
        cell: spec, law, case.
        kind: of the spec.
        law: the sheet of the law.
        sources: of specs, laws and the harness, by name.
        how: what `how_hard` returned.
        status: what the law says.
    """
    keys = [_key(cell[0], law, sources), _of(sources, f"harness {kind}")]
    keys += [_of(sources, name) for name in laws_behind(cell[1], law, status)]
    return combined(keys, law["over"], cell[2], how) if all(keys) else ""


def laws_behind(law: str, sheet: Mapping[str, Any], status: str) -> Sequence[str]:
    """Return the sources of the laws that a verdict depends on: what explains a violation, too, where there is one."""
    names = [law, *sheet.get("requires", ()), *(sheet.get("explained_by", ()) if status in _EXPLAINED else ())]
    return [f"law {name}" for name in dict.fromkeys(names)]


def stale_names(source_names: Mapping[str, Source], today: Mapping[str, Source]) -> Iterator[str]:
    """Yield the names of sources that are not as they were; `examples of NAME` where only docstrings moved."""
    for name, was in source_names.items():
        now = today[name]
        if not was.key or was.key != now.key:
            yield name
        elif was.documented != now.documented:
            yield f"examples of {name}"


def stands_on(spec: str, kind: str, law: str, sheet: Mapping[str, Any], status: str) -> frozenset[str]:
    """Return the names of the sources that a verdict of a law on a spec depends on, as `stale_names` yields them."""
    names = {f"spec {spec}", f"harness {kind}", *laws_behind(law, sheet, status)}
    return frozenset(names | {f"examples of spec {spec}"} if sheet.get("over") == "documents" else names)


def reusable(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether verdicts of one provenance can be in a record of another one."""
    return same_environment(one, other) and how_hard(one) == how_hard(other)


def _key(spec: str, law: Mapping[str, Any], sources: Mapping[str, Source]) -> str:
    source = sources.get(f"spec {spec}")
    if source is None:
        return ""
    return source.documented if law["over"] == "documents" else source.key


def _of(sources: Mapping[str, Source], name: str) -> str:
    return sources[name].key if name in sources else ""
