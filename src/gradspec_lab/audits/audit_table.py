"""The published functions that are audited: where each stands, and one call of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Audited:
    """A function of a package, and a call."""

    #: As pip installs it.
    package: str
    version: str
    #: As `gradspec audit` takes it; a file, relative to where pip put it, if the package around it needs others.
    target: str
    #: The arguments of the call.
    case: str

    @property
    def name(self) -> str:
        """Package and class: `snntorch:ATan`."""
        return f"{self.package}:{self.target.rpartition(':')[2]}"


AUDITED = (
    Audited(
        package="entmax",
        version="1.3",
        target="entmax.activations:SparsemaxFunction",
        case="(randn(4, 6),)",
    ),
    Audited(
        package="sparsemax",
        version="0.1.9",
        target="sparsemax.sparsemax:SparsemaxFunction",
        case="(randn(4, 6), -1)",
    ),
    Audited(
        package="snntorch",
        version="1.0.0",
        target="snntorch.surrogate:ATan",
        case="(randn(2, 3), 2.0)",
    ),
    Audited(
        package="snntorch",
        version="1.0.0",
        target="snntorch.surrogate:StraightThroughEstimator",
        case="(randn(2, 3),)",
    ),
    Audited(
        package="spikingjelly",
        version="2.0.0",
        target="spikingjelly.activation_based.surrogate:atan",
        case="(randn(2, 3), 2.0)",
    ),
    Audited(
        package="pytorch_revgrad",
        version="0.2.0",
        target="pytorch_revgrad.functional:RevGrad",
        case="(randn(2, 3), tensor(0.5))",
    ),
    Audited(
        package="brevitas",
        version="0.13.4",
        target="brevitas.ops.autograd_ste_ops:RoundSteFn",
        case="(randn(2, 3),)",
    ),
    Audited(
        package="timm",
        version="1.0.31",
        target="timm/layers/activations_me.py:SwishAutoFn",
        case="(randn(2, 3),)",
    ),
    Audited(
        package="compressai",
        version="1.2.8",
        target="compressai/ops/bound_ops.py:LowerBoundFunction",
        case="(randn(2, 3), tensor([0.1]))",
    ),
    Audited(
        package="sinabs",
        version="3.1.3",
        target="sinabs/activation/quantize.py:Quantize",
        case="(randn(2, 3),)",
    ),
)
