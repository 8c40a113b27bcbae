"""Hold the published implementations to our specs, and write the record that the pages show as "Differences".

`nox -s lab -- measure peers` installs the published packages into a folder of their own and runs this file.
"""

from __future__ import annotations

import argparse
import importlib.metadata
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from gradspec._engine._plan import Check, plan, with_required
from gradspec._engine._verify import run_plan
from gradspec._record import Source, write
from gradspec.functions import GRAD_FACTOR, GRAD_MULTIPLY, LINEAR_AVERAGE_OP, LINEAR_CROSS_ENTROPY, SHAKE_SHAKE
from gradspec.functions._linear_cross_entropy._differences import BY_ROW, SUMMED, TORCH
from gradspec.functions._shake_shake._differences import ON_THE_CPU, PUBLISHED
from gradspec.laws import LAWS
from gradspec.nn import SHAKE_BLOCK, SHAKE_BOTTLE_NECK, SHAKE_RESNET, SHAKE_RESNEXT, SHORTCUT
from gradspec.nn._shake._differences import FOLDER
from gradspec.profile import load_profile
from gradspec.report import Report
from gradspec.spec import FunctionSpec, ModuleSpec
from gradspec_lab._summary import summary_text
from gradspec_lab.peers import linear_cross_entropy, shake_shake
from gradspec_lab.peers.load import alone, cut

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from gradspec.spec import Noise


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One published implementation, and the promise that it is held to."""

    #: The distribution on PyPI, of which the record notes the version.
    package: str
    #: The class, by its import path.
    path: str
    spec: FunctionSpec | ModuleSpec
    #: How users of the published class call it.
    call: Callable[[type], Callable[..., Any]]
    #: How users of the published class draw its noise, from our spec's and the class; where there is noise.
    noise: Callable[[Noise, type], Noise] | None = None
    #: Its name in the record; empty: the import path.
    named: str = ""

    @property
    def name(self) -> str:
        """The name in the record."""
        return self.named or self.path


def _apply(cls: Any) -> Callable[..., Any]:
    function: Callable[..., Any] = cls.apply
    return function


def _apply_tuple(cls: Any) -> Callable[..., Any]:
    return lambda x, scale: cls.apply((x, scale))


PEERS = (
    Peer(package="torchlogix", path="torchlogix.functional.GradFactor", spec=GRAD_FACTOR, call=_apply),
    Peer(package="espnet", path="espnet2.asr.encoder.avhubert_encoder.GradMultiply", spec=GRAD_MULTIPLY, call=_apply),
    # The only call of this one in espnet, in `TransformerEncoder.extract_features`, gives both arguments in a tuple.
    Peer(
        package="espnet", path="espnet2.asr.encoder.beats_encoder.GradMultiply", spec=GRAD_MULTIPLY, call=_apply_tuple
    ),
    # The page prints an older name of this folder, `FoundationClassifier`; the file is that of lemniscate.pytorch.
    Peer(
        package="brails",
        path="brails.processors.foundation_classifier.npid.npid_lib.LinearAverage.LinearAverageOp",
        spec=LINEAR_AVERAGE_OP,
        call=_apply,
    ),
    Peer(package="archai", path=PUBLISHED, spec=SHAKE_SHAKE, call=shake_shake.as_published),
    Peer(
        package="archai",
        path=PUBLISHED,
        spec=SHAKE_SHAKE,
        call=shake_shake.given,
        noise=shake_shake.drawn,
        named=ON_THE_CPU,
    ),
    *(
        Peer(package="archai", path=f"{FOLDER}.{path}", spec=spec, call=shake_shake.on_the_cpu)
        for path, spec in (
            ("shake_resnet.ShakeResNet", SHAKE_RESNET),
            ("shake_resnext.ShakeResNeXt", SHAKE_RESNEXT),
            ("shake_resnet.ShakeBlock", SHAKE_BLOCK),
            ("shake_resnext.ShakeBottleNeck", SHAKE_BOTTLE_NECK),
            ("shakeshake.Shortcut", SHORTCUT),
        )
    ),
)


#: What torch has itself.
OF_TORCH = (
    Peer(
        package="torch",
        path=TORCH,
        spec=LINEAR_CROSS_ENTROPY,
        call=linear_cross_entropy.rows,
        named=BY_ROW,
    ),
    Peer(
        package="torch",
        path=TORCH,
        spec=LINEAR_CROSS_ENTROPY,
        call=linear_cross_entropy.total,
        named=SUMMED,
    ),
)

#: What these offer of our spec.
OFFERED = {BY_ROW: linear_cross_entropy.offered, SUMMED: linear_cross_entropy.summed}


def held(peer: Peer, site: Path) -> FunctionSpec | ModuleSpec:
    """Return our spec about the published implementation in `site`."""
    module, _, name = peer.path.rpartition(".")
    if isinstance(peer.spec, ModuleSpec):
        return peer.spec.for_(peer.call(getattr(alone(site, module), name)), name=peer.name)
    file = site.joinpath(*module.split(".")).with_suffix(".py")
    cls = cut(file, name)
    ours = peer.spec.noise
    # Another copy of the class draws: what stands in for its source of noise differs.
    noise = peer.noise(ours, cut(file, name)) if peer.noise and ours else None
    return peer.spec.for_(peer.call(cls), name=peer.name, implementation=cls, noise=noise)


def held_of_torch(peer: Peer) -> FunctionSpec | ModuleSpec:
    """Return as much of our spec as a function of torch offers, about that function."""
    assert isinstance(peer.spec, FunctionSpec)
    # By its name: what imports a module by a text stands on all that there is to import.
    return OFFERED[peer.name](peer.spec).for_(peer.call(torch.nn.functional.linear_cross_entropy), name=peer.name)


def versions(site: Path) -> dict[str, str]:
    """Return the version of each published package in `site`."""
    found = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions(path=[str(site)])}
    return {package: found[package] for package in sorted({peer.package for peer in PEERS})}


def summary(report: Report) -> str:
    """Return what the report says of each peer, in a form to read: the counts, then each failure."""
    lines = []
    for peer in (*PEERS, *OF_TORCH):
        verdicts = report.of(spec=peer.name)
        counts = Counter(verdict.status.value for verdict in verdicts)
        lines += [peer.name, "  " + ", ".join(f"{n} {status}" for status, n in counts.most_common())]
        by_law = Counter(verdict.law for verdict in verdicts if verdict.status.is_failure)
        for law, n in by_law.items():
            first = next(v for v in report.of(spec=peer.name, law=law) if v.status.is_failure)
            lines.append(
                f"  {law}: {n} cases, the first {first.case!r} ({first.status.value}): {first.finding.message}"
            )
    return "\n".join(lines)


def main() -> None:
    """Verify, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=Path, required=True, help="the folder that pip installed the packages into")
    parser.add_argument("--out", type=Path, required=True, help="where to write the record")
    options = parser.parse_args()
    report = measured(options.site)
    print(summary(report))
    write(summary_text(report), options.out)


def _is_asked(check: Check, only: Collection[tuple[str, str, str]]) -> bool:
    """Whether a cell is among some, or a law among them requires it."""
    spec, law, case = check.cell
    return check.cell in only or any(
        (spec, other.name, case) in only and law in (needed.name for needed in with_required([other], LAWS))
        for other in LAWS
    )


def held_to_specs(site: Path) -> list[FunctionSpec | ModuleSpec]:
    """Return our specs about all published implementations."""
    return [*(held(peer, site) for peer in PEERS), *map(held_of_torch, OF_TORCH)]


def planned(site: Path) -> list[Check]:
    """Return the checks of all of them, none of them run."""
    return list(plan(held_to_specs(site), LAWS, load_profile("every-case")))


def measured(
    site: Path,
    *,
    only: Collection[tuple[str, str, str]] | None = None,
    known: Report | None = None,
    keep: Callable[[Report], None] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Report:
    """Return the report on the packages in a folder; of some cells, with those that they require, if they are given.

    Args:
        site: the folder.
        only: the cells.
        known: what an interrupted run of the same files has measured.
        keep: called with what was measured, if this run is interrupted.
        progress: as `verify` takes it.
    """
    found, profile, specs = versions(site), load_profile("every-case"), held_to_specs(site)
    checks = [check for check in plan(specs, LAWS, profile) if only is None or _is_asked(check, only)]
    # A class that was cut out of a file has no module to be found by: what is measured depends on this tree as a whole.
    given = {f"spec {spec.name}": Source(roots=()) for spec in specs}
    report = run_plan(checks, specs, LAWS, profile, given=given, known=known, keep=keep, progress=progress)
    return replace(report, provenance={**report.provenance, "packages": found})


if __name__ == "__main__":
    main()
