"""Audit a function by a few calls: every law that needs no spec, and a spec to paste.

What the function does in plain eager mode is taken as its promise. A transform, a layout or a second backward
pass that gives something else is a finding; whether the eager gradient is the one that its author meant is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, wraps
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from gradspec._audit._apart import apart
from gradspec._audit._asked import Asked
from gradspec._audit._case_syntax import read_case
from gradspec._audit._causes import explained
from gradspec._audit._eager_spec import eager_spec
from gradspec._audit._found import Audit, with_remarks
from gradspec._audit._in_place import REFUSED, on_copies, on_copies_too, written_by, written_by_references
from gradspec._audit._look import Look, is_answered, look
from gradspec._audit._marks import check_zero, with_marks
from gradspec._audit._measured import Measured
from gradspec._audit._of_form import silent_for_form
from gradspec._audit._own_dtype import in_dtype
from gradspec._audit._parameters import with_parameters
from gradspec._audit._placed import placed, without_ranks, without_spec
from gradspec._audit._proposal import Proposal
from gradspec._audit._redrawn import redrawn
from gradspec._audit._references import measured_with, with_references
from gradspec._audit._refusals import (
    ON_CUDA,
    check_asked,
    ended_call,
    refused,
    refused_call,
    runs_on_cuda,
    with_unjudged,
)
from gradspec._audit._remarks import of_calls, of_copies, of_noise, of_report
from gradspec._audit._reveal import swept
from gradspec._audit._selection import selected
from gradspec._audit._subject import Subject, home_in, subject_of
from gradspec._audit._words import in_words, reworded
from gradspec._audit._written import promised, proposed
from gradspec._engine._compiler import import_autograd, import_dynamo
from gradspec._engine._lost import why_lost
from gradspec._engine._named import laws_of
from gradspec._engine._parallel import Progress
from gradspec._engine._plan import plan
from gradspec._engine._refusals import check_profile
from gradspec._engine._turn import one_at_a_time
from gradspec._engine._verify import run_plan
from gradspec._held import unmoved
from gradspec._one_line import in_short
from gradspec._record import Source, SourcesLater, roots_of
from gradspec.explain import without_reasons
from gradspec.law import Finding, Law, Status, Verdict
from gradspec.profile import Profile, load_profile
from gradspec.report import Report
from gradspec.spec import Accuracy, Case, FunctionSpec, Supports

Run = TypeVar("Run", bound=Callable[..., Audit])


def _moving_nothing(audit: Run) -> Run:
    """Let the objects of the calls, as a module in training, be after an audit what they were before it."""

    @wraps(audit)
    def run(function: Any, cases: Any, **how: Any) -> Audit:
        with unmoved((case.args, case.kwargs) if isinstance(case, Case) else case for case in cases):
            return audit(function, cases, **how)

    return run  # type: ignore[return-value]  # of the same signature


@one_at_a_time
@_moving_nothing
def audit(
    function: Callable[..., Any],
    cases: Sequence[Case | tuple[Any, ...] | str],
    *,
    name: str = "",
    path: str = "",
    laws: Sequence[Law | str] | None = None,
    profile: Profile | None = None,
    seed: int = 0,
    jobs: int | None = None,
    progress: Progress | None = None,
    known: Report | Sequence[Report] | None = None,
    sharded: bool = False,
    reference: Callable[..., Any] | None = None,
    surrogate: Callable[..., Any] | None = None,
    gradient: Callable[..., Any] | None = None,
    reference_paths: Sequence[str] = ("", "", ""),
    wrt: Sequence[str] = (),
    zero_gradient: Sequence[str] = (),
    noise: Sequence[str] = (),
    supports: Supports | None = None,
    accuracy: Accuracy | None = None,
    sweep: bool = False,
) -> Audit:
    """Hold a function without a spec to every law that needs none, or to what it should compute.

    Args:
        function: a `torch.autograd.Function` class (its `apply` is called), or anything that is called with tensors.
        cases: representative calls, each a `Case`, a tuple of positional arguments, or a text that `read_case` reads,
            with tensors on the device of the profile. Calls with tensors on a CUDA device are audited there.
            Floating tensors in float64 show most; a gradient is asked for of every floating tensor. Where the function
            does not take their dtype, it is audited in one that it takes.
        name: the function's name in the report; its own unless given.
        path: its import path, `package.module:Name`, for the text of the proposal.
        laws: the laws to choose from, or the names of ours, as ["surrogate"]; all of ours unless told.
        profile: how hard; `quick` unless told.
        seed: of all random numbers.
        jobs: how many child processes at a time; as many as there are processors, where that pays.
        progress: called before each check, and once at the end.
        known: an earlier report, or those of a record: their verdicts are reused as `verify` does.
        wrt: the arguments that are trained, beside the tensors that require a gradient and the parameters of a module:
            that such a one gets no gradient, and the output moves with it, is a finding. Of any other it is a question,
            unless the call has one that is trained.
        zero_gradient: the arguments that get no gradient on purpose, or zeros.
        noise: the arguments that are noise, and get no gradient. What a function draws inside needs no name: each call
            is replayed from the same state of the generators.
        supports: what the function promises, as `Supports.eager(autocast=True)`: that it refuses this is a finding.
            Beside training nothing is promised unless told.
        accuracy: how accurate its results are, if more than rounding makes them differ, as `Accuracy(rtol=1e-8)` of a
            solver.
        sweep: whether to try the calls that are written as text with other sizes, values and options first, one changed
            at a time; the smallest that shows a wrong value or gradient is audited with the given ones.
        sharded: whether to ask too for DTensors: `shard(0)` of each argument with the batch dimension of the output.
        reference: what forward should compute, in plain differentiable torch, of the same arguments; backward should
            then apply its derivative. With it the laws that need a spec run too. Of a module it takes the inputs.
        surrogate: the map whose derivative backward should apply, where that is meant to be another one.
        gradient: in place of a surrogate, where backward is the derivative of no map: what backward returns, in plain
            torch, as the field of that name in a `FunctionSpec`.
        reference_paths: the import paths of `reference`, `surrogate` and `gradient`, for the text of the proposal.

    Returns:
        The report, the proposed spec and the remarks. Whatever the function does is in them, never an exception.

    Raises:
        TypeError: `function`, `reference`, `surrogate` or `gradient` cannot be called.
        ValueError: there is no case, there are two of one name, or one does not fit the function's arguments; no call
            has a floating-point tensor, unless it is of an operator; a law is unknown, or none of those can judge it;
            `reference` or `surrogate` takes other arguments, or raises on a case; both `surrogate` and `gradient` are
            given; or `zero_gradient` names an argument whose gradient is not zero.

    Example:
        >>> import torch
        >>> from gradspec import audit
        >>> class Sign(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x.sign()
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad
        >>> found = audit(Sign, [(torch.tensor([0.5, -2.0], dtype=torch.float64),)])
        >>> [str(verdict.status) for verdict in found.report.of(law="surrogate")]
        ['question']
    """
    if isinstance(cases, str | torch.Tensor | Case | dict):
        raise TypeError(f"cases is one call, and not a list of them: write [{in_short(cases)}]")
    if numbers := [one for one in cases if isinstance(one, int | float | complex | None)]:
        raise TypeError(f"{numbers[0]} among the cases is no call: write [(x, 0.5)]")
    check_asked(function, accuracy)
    laws, found_by_sweep = laws_of(laws), ""
    profile = profile or load_profile("quick")
    check_profile(profile)
    profile = replace(profile, device=where(profile, function, cases))
    import_autograd()  # before the first child
    cases, anew = redrawn(function, cases, profile, seed)
    if sweep:
        alike: Any = {"name": name, "path": path, "seed": seed, "jobs": jobs, "reference": reference}
        alike |= {"surrogate": surrogate, "gradient": gradient, "wrt": wrt, "zero_gradient": zero_gradient}
        alike |= {"noise": noise, "supports": supports, "accuracy": accuracy}
        hard = replace(profile, laws=())

        def judge(texts: Sequence[str], few: Sequence[Law]) -> Sequence[Verdict]:
            with without_reasons():
                return audit(function, texts, laws=few, profile=hard, **alike).report.verdicts

        shown_by = swept(
            function,
            cases,
            judge,
            laws,
            hard,
            seed,
            refer=partial(with_references, primal=reference, surrogate=surrogate, gradient=gradient),
            has_reference=reference is not None or surrogate is not None,
        )
        cases, found_by_sweep = [*cases, *shown_by.cases], f"By the sweep, {shown_by.said}."
    named = tuple(_case(case, number, seed, profile.device) for number, case in enumerate(cases, 1))
    if not named:
        raise ValueError("an audit needs at least one case: a tuple of arguments, such as (torch.randn(2, 3), 0.5)")
    hard = profile
    subject, named = subject_of(function, named, name)
    told: Any = {"supports": supports or Supports.eager(), "accuracy": accuracy or Accuracy()}
    subject = replace(subject, home=home_in(path), **told)
    subject, named = with_marks(subject, named, wrt, zero_gradient, noise)
    roles = ("reference", "surrogate" if gradient is None else "gradient")
    subject = with_references(subject, named, primal=reference, surrogate=surrogate, gradient=gradient, roles=roles)
    paths = {subject.name: path} if path else None
    import_dynamo()  # once, and not in each child
    found = apart(lambda: look(subject, named, hard, seed), profile, seed)
    if isinstance(found, Look) and REFUSED in found.measured.raised:
        dirty = apart(lambda: written_by(subject, named), profile, seed)
        if not isinstance(dirty, Finding) and dirty:
            subject = on_copies(subject, dirty)
            found = apart(lambda: look(subject, named, hard, seed), profile, seed)
    ended = None
    if isinstance(found, Finding):  # the function has ended the process, or hangs
        is_plain = found.is_cut_off and apart(lambda: is_answered(subject, named, hard, seed), profile, seed) is True
        ended, found = ended_call(found, elsewhere=is_plain), Look(measured=Measured(raised=found.message))
    measured = found.measured
    made = (in_dtype(named, found.own) or named) if found.own else named
    refuses = measured.raised or measured.no_arithmetic
    check_zero(subject, named, zero_gradient, measured)
    if subject.has_reference and not refuses:
        try:
            measured = measured_with(subject, measured, made, profile, seed, roles=roles)
        except ValueError as error:
            if REFUSED not in str(error):
                raise
            writes = apart(lambda: written_by_references(subject, made), profile, seed)
            subject = subject if isinstance(writes, Finding) else on_copies_too(subject, writes)
            measured = measured_with(subject, measured, made, profile, seed, roles=roles)
    spec = eager_spec(subject, made, measured)
    given = SourcesLater(lambda: {f"spec {spec.name}": _source(path, spec, made, subject)})
    if refuses:
        finding = ended or refused_call(measured)
        if (
            not ended
            and profile.device == "cpu"
            and apart(partial(runs_on_cuda, subject, named), profile, seed) is True
        ):
            finding = replace(finding, likely=ON_CUDA)
        return refused(spec, finding, profile, seed, paths, given, on=measured.raised_on)
    if sharded:
        spec, laws = placed(spec, made[0]), without_spec(laws)
    chosen = selected(laws, profile, measured, subject)
    profile = replace(profile, laws=())  # they are chosen
    checks = plan([spec], chosen, profile, seed=seed, paths=paths)
    how: Any = {"seed": seed, "paths": paths, "jobs": jobs, "progress": progress, "known": known}
    raw = run_plan(checks, [spec], chosen, profile, **how, given=given)
    asked = Asked(subject=subject, cases=tuple(made), measured=measured, laws=chosen, profile=profile, seed=seed)
    raw = with_parameters(raw, replace(asked, measured=found.measured), measured.wrt)
    said = in_words(subject, made)
    if why_lost(profile.device):  # no experiment explains what was found
        return Audit(report=with_remarks(reworded(raw, said), spec.name, found.remarks), proposal="")
    if progress and raw.violations:
        progress(len(checks), len(checks), "looking for causes")
    report = reworded(explained(raw, asked), said)
    if measured.keeps_state and not subject.has_reference:
        report = with_unjudged(report, spec.name, made, laws, measured)
    ignored = tuple(name for name in measured.ignored if name not in subject.zero)
    is_partly_finite = measured.is_partly_finite and not subject.has_reference
    shown = replace(measured, zero=found.measured.zero, ignored=ignored, is_partly_finite=is_partly_finite)
    is_wrong = _is_broken(report, "surrogate")
    is_lost = any(verdict.finding.got == "None" for verdict in report.of(law="surrogate"))
    seen = [
        *found.remarks,
        *of_copies(subject.written),
        *map(said, of_calls(shown, is_asked="surrogate" in report.laws, is_wrong=is_wrong, is_lost=is_lost)),
        *of_report(report, is_wrong=is_wrong or _is_broken(report, "undefined_cotangent")),
        *filter(None, (anew, found_by_sweep)),
    ]
    if measured.is_noisy:
        left_out = [law for law in laws if law.judges(spec.kind) and law not in chosen]
        silent = apart(lambda: silent_for_form(subject, made[0], measured, left_out, hard, seed), hard, seed)
        seen += of_noise(measured, () if isinstance(silent, Finding) else silent)
    report = with_remarks(report, spec.name, seen, rules=measured.rules)
    written = {case.name: text for case, text in zip(named, cases, strict=True) if isinstance(text, str)}
    things = {"primal": reference, "surrogate": surrogate, "gradient": gradient}
    answers = {role: (thing, path) for (role, thing), path in zip(things.items(), reference_paths, strict=False)}
    if surrogate is None and gradient is None:
        answers["surrogate"] = answers["primal"]
    proposal = Proposal(
        spec=eager_spec(subject, made, promised(subject, measured)),
        function=function,
        report=without_ranks(report),
        path=path,
        # The spec of a module names none.
        references={r: (thing, at) for r, (thing, at) in answers.items() if thing is not None and not subject.layers},
        written=written,
        seed=seed,
        dtype=found.own,
        nested=measured.nested,
        state=frozenset(subject.state),
        written_to=subject.written,
    )
    # Without placements `sharded` says nothing.
    text, remarks = proposed(proposal, measured, without_ranks(raw), chosen, profile, seed)
    return Audit(report=report, proposal=text, remarks_of_proposal=remarks)


def _is_broken(report: Report, law: str) -> bool:
    """Whether a law is broken on a case."""
    return any(verdict.status is Status.BROKEN for verdict in report.of(law=law))


def _source(path: str, spec: FunctionSpec, cases: Sequence[Case], subject: Subject) -> Source:
    """Return what the verdicts depend on: the function, its calls, and what replaces its spec."""
    roots = roots_of(spec.modules, path)
    said = sorted(map(sorted, subject.marked.values())), sorted(subject.zero)
    facts = repr(([(case.name, case.args, case.kwargs) for case in cases], said))
    names = [call and call.__qualname__ for call in (subject.primal, subject.surrogate)]
    return Source.of(*roots, facts=f"{facts}{names}" if subject.has_reference else facts)


def _case(case: Case | tuple[Any, ...] | str, number: int, seed: int, device: str) -> Case:
    if isinstance(case, str):
        return read_case(case, seed=seed, device=device)
    if isinstance(case, Case):
        return case
    return Case(name=f"call {number}", args=case if isinstance(case, tuple) else (case,))


def where(profile: Profile, function: Any, cases: Sequence[Any]) -> str:
    """Return the device on which a function is audited: that of the tensors of its calls, if it is a CUDA device.

    Args:
        profile: which says where the tensors of a call are that is written as text.
        function: what is audited; a module has tensors of its own.
        cases: its calls, and texts.
    """
    own = list(function.parameters()) if isinstance(function, torch.nn.Module) else []
    kept = [read_case(case) if isinstance(case, str) and case.strip().startswith("@") else case for case in cases]
    calls = [(case.args, dict(case.kwargs)) if isinstance(case, Case) else case for case in kept]
    tensors = [t for t in (*own, *tree_leaves(calls)) if isinstance(t, Tensor)]
    return next((str(t.device) for t in tensors if t.is_cuda), profile.device)
