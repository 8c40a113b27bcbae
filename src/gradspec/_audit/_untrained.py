"""A call that is refused for which of its arguments require a gradient, and works where all of them do."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from gradspec._audit._subject import Subject
from gradspec._audit._trials import takes_gradient
from gradspec._one_line import listed
from gradspec._place import place_of
from gradspec.law import Finding, Rank, broken, shown
from gradspec.laws.tensor.support._call import bound, differentiable, fresh
from gradspec.spec import Case

#: What Python says of a name that only one branch of forward assigns, and what to do.
_UNBOUND = "only some ways through forward assign it: give it a value on each, as `None` where nothing is computed"


def refused_untrained(subject: Subject, cases: Sequence[Case]) -> Finding | None:
    """Return the finding that a call raises where some of its arguments require no gradient; None where none does so.

    What raises where all require one, too, is said of the arguments.
    """
    for case in cases:
        every = [name for name in subject.signature.parameters if takes_gradient(subject, case, name)]
        untrained = _error(subject, case, ())
        if untrained is None or not every or _error(subject, case, every) is not None:
            continue
        trained = {subject.parameter_of(leaf) for leaf in subject.marked.get(case.name, ())}
        asked = [name for name in every if name in trained]
        as_made = _error(subject, case, asked) if asked and asked != every else None
        error = as_made or untrained
        no_other = f"no argument but {listed(asked)}" if as_made else "no argument"
        where = f"{no_other} requires a gradient{'' if as_made else ', as in evaluation'}"
        said, do = shown(error), "does" if len(every) == 1 else "do"
        return broken(
            f"forward raises where {where}, and not where {listed(every)} {do}: {said}",
            likely=_UNBOUND if isinstance(error, UnboundLocalError) else "",
            rank=Rank.REFUSED,
            details={"raised": said, "place": place_of(error)},
        )
    return None


def _error(subject: Subject, case: Case, trained: Collection[str]) -> BaseException | None:
    """Return what a call raises in which some arguments require a gradient."""
    given = bound(subject.signature, case)
    those = {id(leaf) for name in trained for leaf in tree_leaves(given.get(name)) if differentiable(leaf)}

    def copy(leaf: object) -> object:
        made = fresh(leaf)
        return made.requires_grad_() if isinstance(made, Tensor) and id(leaf) in those else made

    try:
        subject.call(*tree_map(copy, case.args), **tree_map(copy, dict(case.kwargs)))
    except (Exception, SystemExit) as error:
        return error
    return None
