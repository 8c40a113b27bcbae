"""Hold the published implementations to our specs, and write the record that the pages show as "Differences".

`nox -s peers` installs the published packages into a folder of their own and runs this file.
"""

from __future__ import annotations

import argparse
import importlib.metadata
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import shake_shake
from load import alone, cut

from gradspec._verify import verify
from gradspec.functions import GRAD_FACTOR, GRAD_MULTIPLY, LINEAR_AVERAGE_OP, SHAKE_SHAKE
from gradspec.functions._shake_shake_differences import ON_THE_CPU, PUBLISHED
from gradspec.module_spec import ModuleSpec
from gradspec.nn import SHAKE_BLOCK, SHAKE_BOTTLE_NECK, SHAKE_RESNET, SHAKE_RESNEXT, SHORTCUT
from gradspec.nn._shake_differences import FOLDER
from gradspec.profile import load_profile
from gradspec.report import Report, write_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradspec.spec import FunctionSpec, Noise


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


def versions(site: Path) -> dict[str, str]:
    """Return the version of each published package in `site`."""
    found = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions(path=[str(site)])}
    return {package: found[package] for package in sorted({peer.package for peer in PEERS})}


def summary(report: Report) -> str:
    """Return what the report says of each peer, in a form to read: the counts, then each failure."""
    lines = []
    for peer in PEERS:
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
    report = verify([held(peer, options.site) for peer in PEERS], profile=load_profile("quick"))
    report = replace(
        report,
        provenance={**report.provenance, "packages": versions(options.site)},
        # No import path leads to a class that was cut out of a file: this session is what runs a check again.
        verdicts=tuple(replace(verdict, again="nox -s peers") for verdict in report.verdicts),
    )
    print(summary(report))
    write_record(report, options.out)
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
