"""The request of one measurement: specs, laws, profile and device; the same in each of its processes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gradspec._engine._plan import Check, plan
from gradspec._registry._registry import resolve_all
from gradspec.laws import LAWS
from gradspec.profile import Profile, load_profile
from gradspec.spec import Spec

#: Every function, network and operator of ours.
TARGETS = ("gradspec.functions", "gradspec.nn", "gradspec.operators")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a measurement asks; plain data, which a process is given."""

    device: str = "cuda"
    #: Of the laws that compile; `aot_eager` where this machine has no C compiler, which Triton calls.
    backend: str = "inductor"
    #: On how many cases of a spec these laws run: a compilation for a device takes 10 to 20 s.
    compiled_cases: int = 1
    seed: int = 0
    targets: tuple[str, ...] = TARGETS
    #: The laws to run; empty for all.
    laws: tuple[str, ...] = ()

    @property
    def profile(self) -> Profile:
        """The profile `cuda`, on the device, with what is asked."""
        return replace(
            load_profile("cuda"),
            device=self.device,
            backend=self.backend,
            compiled_cases=self.compiled_cases,
            laws=self.laws,
        )

    @property
    def specs(self) -> list[tuple[str, Spec]]:
        """The specs, each with its path."""
        return resolve_all(self.targets)

    def checks(self) -> list[Check]:
        """Return the plan: the same in each process, so that a check can be named by its number.

        A law that is known to kill the interpreter runs as any other: each process of a measurement may die.
        """
        pairs = self.specs
        paths = {spec.name: path for path, spec in pairs}
        checks = plan([spec for _, spec in pairs], LAWS, self.profile, seed=self.seed, paths=paths)
        return [
            replace(check, law=replace(check.law, cost="ms"))
            if check.law.cost == "process" and not check.law.alone
            else check
            for check in checks
        ]
