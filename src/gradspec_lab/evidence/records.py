"""The committed records: which of them are of an older source, and their renewal.

`python -m gradspec_lab.evidence.records --check` lists what is stale, from files: it needs neither torch nor an
installed gradspec. `nox -s records` renews what is stale and must be current; `nox -s records -- NAME` renews one by
its name.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "src"))  # `--check` runs where gradspec is not installed

from gradspec._record import RecordError, Source, read, stale_names, stands_on  # noqa: E402 - after the line above
from gradspec._registry._declared import declared_laws  # noqa: E402 - likewise
from gradspec.law import Law  # noqa: E402 - likewise
from gradspec.profile import load_profile  # noqa: E402 - likewise

RECORDS = Path("docs/records")
PEERS = Path("build/peers/site-packages")
STRANGERS = Path("tests/strangers")
TRUTHS = Path("tests/lab/audits/published")
AUDITS = Path("build/audits/site-packages")
#: The file whose failure the first page shows.
FIRST = "docs/examples/specs/scale_gradient.py"


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Records that one command makes."""

    name: str
    #: A pattern below `folder`.
    files: str
    kind: str
    #: The command that renews them, without the Python before it; what is current stays.
    command: tuple[str, ...]
    #: Which of our laws they must hold; none where they hold a few that were chosen.
    laws: Callable[[Law], bool] = lambda law: False
    #: Whether pages and tests hold them to be true of today's source; others may be older, and their pages say so.
    must_be_current: bool = True
    #: Whether they count what the others hold, and are made again behind them.
    counts_others: bool = False
    #: Where they are: in `docs/records` is what pages show, beside tests what these read and other records count.
    folder: Path = RECORDS


RECORDED = (
    Recorded(
        name="peers",
        files="peers.json",
        kind="report",
        command=("src/gradspec_lab/peers/record.py", "--site", str(PEERS), "--out", str(RECORDS / "peers.json")),
        laws=lambda law: law.judges("function"),
    ),
    Recorded(
        name="kills",
        files="kill_matrix.json",
        kind="kill matrix",
        command=("-m", "gradspec_lab", "selftest", "--stock", "--record", str(RECORDS / "kill_matrix.json")),
        laws=lambda law: True,
    ),
    Recorded(
        name="audits",
        files="audits.json",
        kind="audits",
        command=(
            "src/gradspec_lab/audits/audit_record.py",
            "--site",
            str(AUDITS),
            "--out",
            str(RECORDS / "audits.json"),
        ),
        laws=lambda law: law.judges("function") and not law.needs_spec,
    ),
    Recorded(
        name="gallery",
        files="gallery.json",
        kind="gallery",
        command=("src/gradspec_lab/audits/gallery.py", "--out", str(RECORDS / "gallery.json")),
    ),
    Recorded(
        name="figures",
        files="figures/*.json",
        kind="experiment",
        command=("src/gradspec_lab/figures/figure_record.py", "--out", str(RECORDS / "figures")),
    ),
    Recorded(
        name="failure",
        files="first_failure.json",
        kind="report",
        command=(
            *("-m", "gradspec", "check", f"{FIRST}:SCALE", f"{FIRST}:MENDED", "--law", "vjp", "--exit-zero"),
            *("--record", str(RECORDS / "first_failure.json")),
        ),
    ),
    Recorded(
        name="seeds",
        files="seeds.json",
        kind="seeds",
        command=("-m", "gradspec_lab", "selftest", "--seeds", "100", "--record", str(RECORDS / "seeds.json")),
        must_be_current=False,
    ),
    Recorded(name="fuzz", files="fuzz.json", kind="experiment", command=(), must_be_current=False),
    Recorded(
        name="trust",
        files="trust.json",
        kind="experiment",
        command=("src/gradspec_lab/evidence/trust_record.py",),
        must_be_current=False,  # tests/pages/test_trust.py holds it to what the others say
        counts_others=True,
    ),
    Recorded(name="benchmarks", files="benchmarks/*.json", kind="experiment", command=(), must_be_current=False),
    Recorded(name="versions", files="versions/*.json", kind="experiment", command=(), must_be_current=False),
    Recorded(name="coverage", files="coverage.json", kind="experiment", command=(), must_be_current=False),
    Recorded(name="mutations", files="mutations.json", kind="experiment", command=(), must_be_current=False),
    Recorded(name="projects", files="projects.json", kind="experiment", command=(), must_be_current=False),
    Recorded(name="examples", files="examples/*.json", kind="experiment", command=(), must_be_current=False),
    Recorded(
        name="strangers",
        files="record.json",
        kind="experiment",
        command=("src/gradspec_lab/strangers/record.py", "--out", str(STRANGERS / "record.json")),
        must_be_current=False,
        folder=STRANGERS,
    ),
    Recorded(
        name="operators",
        files="operators/record.json",
        kind="experiment",
        command=("src/gradspec_lab/strangers/operators.py", "--out", str(STRANGERS / "operators" / "record.json")),
        must_be_current=False,
        folder=STRANGERS,
    ),
    # Their packages go to a folder of their own: tests/lab/audits/published/README.md has the commands.
    *(
        Recorded(name=name, files=file, kind="experiment", command=(), must_be_current=False, folder=TRUTHS)
        for name, file in (("truth", "truth.json"), ("comparison", "results.json"))
    ),
)


@dataclass(frozen=True, kw_only=True)
class State:
    """What a record holds, and what of it is stale."""

    recorded: Recorded
    path: Path
    #: The names of the sources that have changed.
    stale: tuple[str, ...] = ()
    #: How many measurements it holds, and how many of these stand on a source that has changed.
    cells: int = 0
    stale_cells: int = 0
    date: str = ""
    #: Why it cannot be read.
    error: str = ""

    @property
    def is_current(self) -> bool:
        """Whether it is of today's source."""
        return not (self.stale or self.error)

    @property
    def is_wrong(self) -> bool:
        """Whether it is what it may not be: some may be older, or not be there yet, and none may be edited."""
        return not self.is_current and (self.recorded.must_be_current or (bool(self.error) and self.path.exists()))


def states(names: Sequence[str] = ()) -> Iterator[State]:
    """Yield the state of each committed record; of all, unless some are named."""
    for recorded in RECORDED:
        if names and recorded.name not in names:
            continue
        paths = sorted((ROOT / recorded.folder).glob(recorded.files))
        if not paths:
            yield State(recorded=recorded, path=ROOT / recorded.folder / recorded.files, error="there is none")
        for path in paths:
            yield state(recorded, path, ROOT)


def state(recorded: Recorded, path: Path, folder: Path) -> State:
    """Return the state of one record."""
    try:
        again = f"nox -s records -- {recorded.name}" if recorded.command else "measure it again"
        record = read(path, recorded.kind, again=again)
        sources = {name: Source.from_dict(source) for name, source in record["sources"].items()}
        if not sources:
            raise ValueError("it names no source")
        stale = (
            *moved_profile(record["provenance"]),
            # Of a source without a key nothing can be said, whatever its files are today.
            *stale_names(sources, {name: s.today(folder) if s.key else s for name, s in sources.items()}),
            *moved_laws(recorded, sources),
        )
        rows = list(cells(recorded.kind, record))
    except RecordError as error:
        return State(recorded=recorded, path=path, error=str(error))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return State(recorded=recorded, path=path, error=f"it is no record of {recorded.name} ({error})")
    return State(
        recorded=recorded,
        path=path,
        stale=stale,
        cells=len(rows),
        stale_cells=sum("profile" in stale or not names.isdisjoint(stale) for names in rows),
        date=str(record["provenance"].get("date", ""))[:10] or "an unknown date",
    )


def moved_laws(recorded: Recorded, sources: Mapping[str, Source]) -> Iterator[str]:
    """Yield the laws that a record must hold and does not, and those that it holds and that are in no list any more."""
    declared = {f"law {law.name}": law for law in _declared()}
    yield from (f"{name}, which is new" for name, law in declared.items() if recorded.laws(law) and name not in sources)
    yield from (f"{name}, which is gone" for name in sources if name.startswith("law ") and name not in declared)


@cache
def _declared() -> tuple[Law, ...]:
    return declared_laws()


def moved_profile(provenance: Mapping[str, Any]) -> Iterator[str]:
    """Yield "profile" where the profile of a record is not as hard any more as it was, or harder."""
    noted = provenance.get("profile")  # some note its name only
    if isinstance(noted, Mapping) and len(noted) > 1:
        today = asdict(load_profile(noted["name"]))
        if any(noted.get(name) != value for name, value in today.items() if name not in ("name", "laws")):
            yield "profile"


def cells(kind: str, record: Mapping[str, Any]) -> Iterator[set[str]]:
    """Yield the names of the sources that each measurement of a record stands on."""
    every = set(record["sources"])
    if kind == "report":
        for verdict in record["verdicts"]:
            spec, law, status = verdict["spec"], verdict["law"], verdict["status"]
            yield set(stands_on(spec, law, record["laws"][law], status))
    elif kind == "kill matrix":
        laws = {name for name in every if name.startswith("law ")} | {"judging"}
        for subject in record["subjects"]:
            is_mutant, kind = subject["sort"] == "mutant", subject["source"].removeprefix("specimens ")
            how = {"mutations", "harness function"} if is_mutant else {"stock", f"harness {kind}"}
            yield laws | {subject["source"]} | how
    elif kind == "audits":
        for row in record["audits"]:
            yield from ({f"law {law}", "audit", "harness function"} for law in row["verdicts"])
    else:
        yield every


def check(found: Sequence[State]) -> int:
    """Print what is stale; return how many of the records may not stay as they are."""
    wrong = 0
    for one in found:
        name, count = one.path.relative_to(ROOT), f"{one.cells:,} cell{'s' * (one.cells != 1)}"
        if one.is_current:
            print(f"{name}: {count}, current")
            continue
        wrong += one.is_wrong
        if one.error:
            said = one.error
        else:
            moved = ", ".join(one.stale[:3]) + (f" and {len(one.stale) - 3} more" if len(one.stale) > 3 else "")
            said = f"{one.stale_cells:,} of {count} of an older source ({one.date}): {moved}"
        if not one.is_wrong and one.path.exists():
            said += ", which it may be" + (": its page says so" if one.recorded.folder == RECORDS else "")
        print(f"{name}: {said}")
    return wrong


def renew(recorded: Recorded) -> bool:
    """Run the command that renews records; return whether it came to its end."""
    began = time.monotonic()
    # 1 says that a law is broken somewhere: of a published implementation that is what the record is for.
    code = subprocess.run([sys.executable, *recorded.command], cwd=ROOT, check=False).returncode
    print(f"{recorded.name}: {time.monotonic() - began:.0f} s", flush=True)
    return code == 0


def main() -> None:
    """Check, or renew what is stale."""
    known = [recorded.name for recorded in RECORDED if recorded.command]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join(known)}")
    parser.add_argument("--check", action="store_true", help="list what is stale, and measure nothing")
    parser.add_argument(
        "--stale", action="store_true", help="print the names of what would be renewed, and nothing else"
    )
    options = parser.parse_args()
    if unknown := set(options.names) - set(known):
        parser.error(f"no records {sorted(unknown)[0]!r}: choose from {', '.join(known)}")
    found = list(states(options.names))
    wanted = [r for r in RECORDED if _wanted(r, found, options.names)]
    if options.stale:
        print(" ".join(recorded.name for recorded in wanted))
        return
    if options.check:
        if wrong := check(found):
            print(f"{wrong} of these may not stay so: renew what is stale with `nox -s records`")
        sys.exit(1 if wrong else 0)
    if not wanted:
        print("nothing is stale")
    wanted += [recorded for recorded in RECORDED if recorded.counts_others and wanted and recorded not in wanted]
    failed = [recorded.name for recorded in wanted if not renew(recorded)]
    left = check(list(states(options.names)))
    sys.exit(1 if failed or left else 0)


def _wanted(recorded: Recorded, found: Sequence[State], names: Sequence[str]) -> bool:
    asked = recorded.name in names if names else recorded.must_be_current
    mine = [state for state in found if state.recorded is recorded]
    return bool(recorded.command) and asked and not all(state.is_current for state in mine)


if __name__ == "__main__":
    main()
