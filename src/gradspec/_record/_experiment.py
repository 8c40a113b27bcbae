"""The record of an experiment: anything that was measured beside verdicts, with the script that measured it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradspec._record._file import CHECKSUM, RecordError, read, to_text, write
from gradspec._record._provenance import provenance
from gradspec._record._source import Source, shown_path

KIND = "experiment"
AGAIN = "measure it again"


def experiment_text(content: Mapping[str, Any], sources: Mapping[str, Source], **facts: Any) -> str:
    """Return the record of an experiment as JSON; arguments as `write_experiment`, its sources made."""
    head = {name: content[name] for name in ("name", "what") if name in content}
    noted = {
        "provenance": provenance(**facts) | dict(content.get("provenance", {})),
        **({"sources": {name: source.to_dict() for name, source in sources.items()}} if sources else {}),
    }
    return to_text(KIND, {**head, **noted, **{k: v for k, v in content.items() if k not in (*head, "provenance")}})


def write_experiment(content: Mapping[str, Any], path: Path, *roots: str, **facts: Any) -> None:
    """Write the record of an experiment, for the directives `gradspec-plot`, `gradspec-map` and `gradspec-benchmark`.

    Args:
        content: plain data: `figures`, `maps` or `measurements`, and any numbers beside them.
        path: where; the file is written as a whole.
        roots: the code that measured: `module:NAME`, a module, or the path of a script, from the working directory.
            When a file that it reaches by imports changes, pages say that the record is of an older source.
        facts: what the provenance notes beside date, commit and versions: `device`, `seed`, `command`.

    Raises:
        OSError: the file cannot be written.
    """
    shown = [shown_path(Path(root)) if root.endswith(".py") else root for root in roots]
    sources = {"experiment": Source.of(*shown)} if roots else {}
    write(experiment_text(content, sources, **facts), path)


def update_experiment(record: Mapping[str, Any], path: Path) -> None:
    """Write the record of an experiment after a part was measured again; provenance and sources are as it has them.

    Args:
        record: what `read_experiment` returned, with new rows among the old ones.
        path: where; the file is written as a whole.

    Raises:
        OSError: the file cannot be written.
    """
    write(
        to_text(KIND, {name: value for name, value in record.items() if name not in ("schema", "kind", CHECKSUM)}), path
    )


def read_experiment(path: Path) -> dict[str, Any]:
    """Return what the record of an experiment holds.

    Raises:
        RecordError: the file cannot be read, does not hold a record of this version, or was edited since.
    """
    return read(path, KIND, again=AGAIN)


def experiment_sources(record: Mapping[str, Any]) -> dict[str, Source]:
    """Return what an experiment depends on, by name.

    Raises:
        RecordError: the record says it in another form.
    """
    try:
        return {name: Source.from_dict(source) for name, source in (record.get("sources") or {}).items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(f"the sources of the record cannot be read ({type(error).__name__}: {error})") from None
