"""Checks one by one, each in a child process that it may kill, with what earlier laws said of the case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext

from torch import AcceleratorError

from gradspec._engine._check import run_check, verdict_of
from gradspec._engine._child import Child, available
from gradspec._engine._compiler import import_autograd, import_compiler, import_dynamo
from gradspec._engine._home import at_home
from gradspec._engine._lost import lost, why_lost
from gradspec._engine._plan import Check
from gradspec._engine._turn import measuring
from gradspec._scope import Scope
from gradspec.explain import without_reasons
from gradspec.law import LIMIT, Finding, Status, Verdict, raised
from gradspec.laws import learn, untold
from gradspec.profile import Profile


class Session:
    """Runs the checks of a plan, in any order.

    Args:
        checks: all that may be asked for.
        profile: how hard.
        seed: of all random numbers.
        isolate: run every check in a child process; None for: where this machine can. Laws that are known to kill the
            interpreter run in one in any case, and are not measured where there is none.
        silent: drop what a child process prints.
        said: verdicts that are known already; a law that is required is not run again.
    """

    def __init__(
        self,
        checks: Sequence[Check],
        profile: Profile,
        *,
        seed: int = 0,
        isolate: bool | None = None,
        silent: bool = False,
        said: Iterable[Verdict] = (),
    ) -> None:
        self._numbers = {check.cell: number for number, check in enumerate(checks)}
        self._checks, self._profile, self._seed = checks, profile, seed
        self._can = available(profile.device)
        self._isolate = self._can if isolate is None else isolate
        self._said = {verdict.cell: verdict for verdict in said}
        #: One child for all checks, and one for each check of a law that wants a process in which nothing has run.
        self._child, self._untouched = (
            Child[tuple[int, dict[str, Status], bool], tuple[Verdict, list[bytes]]](
                self._answer, time_limit=profile.time_limit, silent=silent
            )
            for _ in range(2)
        )
        #: The spec that the child has checked last.
        self._of = ""
        #: The law whose limit ran out as it compiled, by spec and case: another one would take as long.
        self._slow: dict[tuple[str, str], str] = {}
        #: The law that has lost the device.
        self._lost = ""
        #: Whether the child has the compiler; a run whose first checks are quick does not wait for it.
        self._compiles = False

    def run(self, check: Check) -> Verdict:
        """Return the verdict of a check; the laws that it requires are run first, once, if the plan has them."""
        if (found := self._said.get(check.cell)) is not None:
            return found
        required = {}
        for law in check.law.requires:
            key = (check.spec.name, law, check.case)
            if key in self._numbers:
                required[law] = self.run(self._checks[self._numbers[key]])
        with measuring():
            verdict = self._said[check.cell] = self._verdict(check, required)
        if check.law.cost == "compile" and verdict.finding.is_cut_off:
            self._slow.setdefault((check.spec.name, check.case), check.law.name)
        return verdict

    def start(self) -> None:
        """Fork the child process before the first check asks for it."""
        if self._isolate and self._can:
            self._child.start()

    def close(self) -> None:
        """End the child processes."""
        self._child.close()
        self._untouched.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _verdict(self, check: Check, required: dict[str, Verdict]) -> Verdict:
        cut_off = next((f"the law {law}" for law, verdict in required.items() if verdict.finding.is_cut_off), "")
        if check.law.cost == "compile" and (slow := self._slow.get((check.spec.name, check.case))):
            cut_off = f"what the compiler makes, as the law {slow}"
        if cut_off:
            why = f"needs {cut_off}, whose limit ran out"
            finding = Finding(status=Status.NOT_MEASURED, message=why, details={LIMIT: "time"})
            return verdict_of(check, finding, self._profile, seed=self._seed)
        prior = {law: verdict.status for law, verdict in required.items()}
        if not (self._isolate or check.law.cost == "process"):
            return self._here(check, prior)
        if not self._can:
            why = "needs a child process, and this platform or device does not allow one"
            finding = Finding(status=Status.NOT_MEASURED, message=why)
            return verdict_of(check, finding, self._profile, seed=self._seed)
        if check.law.cost == "compile" and not self._compiles:
            at_home(import_compiler)
            self._child.close()
            self._compiles = True
        if check.law.alone:
            # Once, and not in each process in which nothing has run; what wraps a module for several ranks has Dynamo.
            at_home(import_dynamo if check.law.scope is Scope.DISTRIBUTED else import_autograd)
        if self._of not in ("", check.spec.name):
            self._child.close()  # what a function leaves in its process is nothing of the next one
        child = self._untouched if check.law.alone else self._child
        self._of = self._of if check.law.alone else check.spec.name
        answer = child.ask((self._numbers[check.cell], prior, True))
        if isinstance(answer, Finding) and child.has_found:
            again = child.ask((self._numbers[check.cell], prior, False))
            # The law has found something: an experiment on its cause took all the time, or ended the interpreter.
            if not isinstance(again, Finding) and again[0].status is Status.BROKEN:
                answer = again
        if check.law.alone:  # what it called must not decide what comes next
            child.close()
        if isinstance(answer, Finding):
            return verdict_of(check, answer, self._profile, seed=self._seed)
        verdict, news = answer
        learn(news)
        return verdict

    def _here(self, check: Check, prior: dict[str, Status]) -> Verdict:
        """Run a check in this process; one that loses the device is the last that runs on it."""
        if self._lost:
            why = f"needs the device, which is lost since the law {self._lost}"
            finding = Finding(status=Status.NOT_MEASURED, message=why)
            return verdict_of(check, finding, self._profile, seed=self._seed)
        try:
            verdict = run_check(check, self._profile, seed=self._seed, prior=prior)
        except AcceleratorError:
            if not why_lost(self._profile.device):
                raise
        if not (why := why_lost(self._profile.device)):
            return verdict
        self._lost = check.law.name
        return verdict_of(check, lost(why), self._profile, seed=self._seed)

    def _answer(self, question: tuple[int, dict[str, Status], bool]) -> tuple[Verdict, list[bytes]]:
        number, prior, explains = question
        check = self._checks[number]
        try:
            with nullcontext() if explains else without_reasons():
                verdict = run_check(check, self._profile, seed=self._seed, prior=prior)
        except KeyboardInterrupt as error:  # the function's: the user's interrupt reaches only the parent
            verdict = verdict_of(check, raised(error), self._profile, seed=self._seed)
        return verdict, untold()
