"""Cells: which verdicts of a record are still valid for what would be measured today."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradspec._one_line import name_of
from gradspec._record._bytes import short
from gradspec._record._provenance import same_environment
from gradspec._record._source import Source

#: A spec, a law and a case of it, by name.
Cell = tuple[str, str, str]
_PARTS = ("spec", "law", "case")
#: What a law says where it is violated: other laws are asked then whether they explain it.
_EXPLAINED = ("broken", "waived", "not_promised")
#: What a profile says of itself beside how hard it is.
_NOT_HOW_HARD = ("name", "laws", "scopes", "time_limit")


def how_hard(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a profile and a seed decides a verdict."""
    profile = dict(provenance.get("profile") or {})
    return {"seed": provenance.get("seed"), **{k: v for k, v in profile.items() if k not in _NOT_HOW_HARD}}


def cell_key(
    cell: Cell, law: Mapping[str, Any], sources: Mapping[str, Source], how: Mapping[str, Any], *, status: str
) -> str:
    """Return the key of a cell; empty where something that it depends on is not known.

    Args:
        cell: spec, law, case.
        law: the sheet of the law.
        sources: of specs and laws, by name.
        how: what `how_hard` returned.
        status: what the law says.
    """
    names = [f"spec {cell[0]}", *laws_behind(cell[1], law, status)]
    keys = [sources[name].key if name in sources else "" for name in names]
    return short(json.dumps([keys, law["over"], cell[2], how], sort_keys=True, default=str)) if all(keys) else ""


def laws_behind(law: str, sheet: Mapping[str, Any], status: str) -> Sequence[str]:
    """Return the sources of the laws that a verdict depends on: what explains a violation, too, where there is one."""
    names = [law, *sheet.get("requires", ()), *(sheet.get("explained_by", ()) if status in _EXPLAINED else ())]
    return [f"law {name}" for name in dict.fromkeys(names)]


def stale_names(source_names: Mapping[str, Source], today: Mapping[str, Source]) -> Iterator[str]:
    """Yield the names of sources that are not as they were."""
    for name, was in source_names.items():
        if not was.agrees(today[name]):
            yield name


def stands_on(spec: str, law: str, sheet: Mapping[str, Any], status: str) -> frozenset[str]:
    """Return the names of the sources that a verdict of a law on a spec depends on, as `stale_names` yields them."""
    return frozenset({f"spec {spec}", *laws_behind(law, sheet, status)})


def reusable(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether verdicts of one provenance can be in a record of another one."""
    return same_environment(one, other) and how_hard(one) == how_hard(other)


def what_lacks(missing: Sequence[Cell], older: Sequence[Cell]) -> str:
    """Return in a sentence what a report lacks of what was asked for; empty if nothing is missing or older."""
    said = [
        f"{len(cells):,} {words} ({_named(cells)})"
        for cells, words in (
            (
                missing,
                "of the cells that were asked for are not measured, as after an interrupt or with --shard",
            ),
            (older, "cells are of an older source"),
        )
        if cells
    ]
    return f"incomplete: {' and '.join(said)}: run the command again" if said else ""


def cells_in(data: Mapping[str, Any], key: str) -> tuple[Cell, ...]:
    """Return the cells that a record lists under a key.

    Raises:
        TypeError: it holds something else there.
    """
    found = tuple(map(tuple, data.get(key, [])))
    for cell in found:
        if len(cell) != len(_PARTS) or not all(isinstance(name, str) for name in cell):
            raise TypeError(f"{cell!r} among {key} is not a cell")
    return tuple((name_of(spec), name_of(law), name_of(case)) for spec, law, case in found)


def _named(cells: Sequence[Cell]) -> str:
    more = f" and {len(cells) - 1:,} more" if len(cells) > 1 else ""
    return f"{' · '.join(cells[0])}{more}"
