"""Sparse gradients are judged by their dense values: those of a sound function hold, and those of its twins do not."""

import pytest
import torch
from torch.autograd import Function

from gradspec import Case, FunctionSpec, Supports, audit, check, verify
from gradspec.law import Status
from gradspec.laws import LAWS

#: torch says once a process that it does not check what a sparse tensor is made of.
pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")
NAMED = {law.name: law for law in LAWS}


class Rows(Function):
    """The rows of a table at places, one of them twice."""

    @staticmethod
    def forward(ctx, places, table):
        ctx.save_for_backward(places)
        ctx.shape = table.shape
        return table[places]

    @staticmethod
    def sparse(places, y_bar, shape):
        """Return the gradient of the table."""
        return torch.sparse_coo_tensor(places[None], y_bar, shape)

    @classmethod
    def backward(cls, ctx, y_bar):
        (places,) = ctx.saved_tensors
        return None, cls.sparse(places, y_bar, ctx.shape)


class RowsOfTheLast(Rows):
    """Of a place that is there twice, the last gradient counts."""

    @staticmethod
    def sparse(places, y_bar, shape):
        last = {int(place): k for k, place in enumerate(places)}
        kept = torch.tensor(sorted(last.values()))
        return torch.sparse_coo_tensor(places[kept][None], y_bar[kept], shape)


class RowsShifted(Rows):
    @staticmethod
    def sparse(places, y_bar, shape):
        return torch.sparse_coo_tensor((places[None] + 1) % shape[0], y_bar, shape)


class RowsOfOneCall(Rows):
    """One gradient for all calls, which each call changes."""

    kept = torch.zeros(3, 3, dtype=torch.float64)

    @classmethod
    def sparse(cls, places, y_bar, shape):
        cls.kept.copy_(y_bar)
        return torch.sparse_coo_tensor(places[None], cls.kept.clone(), shape)


class RowsKept(Rows):
    """One sparse gradient for all calls, which each call changes."""

    kept = torch.tensor([[1.0], [0], [1], [0]], dtype=torch.float64).expand(4, 3).to_sparse(1)

    @classmethod
    def sparse(cls, places, y_bar, shape):
        cls.kept.mul_(2)
        return torch.sparse_coo_tensor(places[None], y_bar, shape)


class RowsThatLook(Rows):
    @staticmethod
    def sparse(places, y_bar, shape):
        found = torch.sparse_coo_tensor(places[None], y_bar, shape)
        return found if found._values().sum().item() else 2 * found


class RowsOfData(Rows):
    """A gradient that the cotangent is behind, and a second derivative that has lost it."""

    @staticmethod
    def sparse(places, y_bar, shape):
        return torch.sparse_coo_tensor(places[None], y_bar.detach(), shape)


def spec_of(function):
    return FunctionSpec(
        name="rows",
        function=function.apply,
        primal=lambda places, table: table[places],
        surrogate=lambda places, table: table[places],
        wrt=("table",),
        supports=Supports.eager(double_backward=True),
        cases=lambda make: iter([Case(name="twice", args=(torch.tensor([0, 2, 2]), make(4, 3)))]),
    )


def said(function, *laws):
    return {v.law: v for v in verify([spec_of(function)], [NAMED[law] for law in laws]).verdicts}


SICK = [
    ("vjp", RowsOfTheLast),
    ("vjp", RowsShifted),
    ("needs_input_grad", RowsShifted),
    ("declared_writes", RowsOfOneCall),
    ("declared_writes", RowsKept),
    ("no_host_read", RowsThatLook),
    ("second_order", RowsOfData),
]


@pytest.mark.parametrize(("law", "twin"), SICK)
def test_a_sparse_gradient_that_is_right_holds_and_its_twin_does_not(law, twin):
    sound, sick = said(Rows, law)[law], said(twin, law)[law]

    assert (sound.status, sick.status) == (Status.HOLDS, Status.BROKEN)
    assert "raised" not in sick.finding.details


def test_no_law_that_needs_no_transform_refuses_a_sparse_gradient():
    laws = [law for law in LAWS if law.judges("function") and law.cost == "ms"]
    found = verify([spec_of(Rows)], laws)

    assert [(v.law, v.finding.message) for v in found.failures] == []
    assert len([v for v in found.verdicts if v.status is Status.HOLDS]) > 15


def test_the_sparse_embedding_of_torch_can_be_audited():
    def looked_up(places, table):
        return torch.nn.functional.embedding(places, table, sparse=True)

    found = audit(looked_up, ["(tensor([0, 2, 2]), randn(5, 4))"], laws=[NAMED["surrogate"], NAMED["layout"]])

    assert [v.status for v in found.report.verdicts] == [Status.HOLDS, Status.HOLDS]


def test_an_audit_finds_a_wrong_sparse_gradient():
    (verdict,) = audit(RowsShifted, ["(tensor([0, 2, 2]), randn(5, 4))"], laws=[NAMED["surrogate"]]).report.verdicts

    assert verdict.status is Status.BROKEN


class Squares(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.to_dense() ** 2

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * ctx.saved_tensors[0].to_dense() * y_bar


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_a_gradient_of_a_sparse_argument_is_refused_and_no_failure(layout):
    x = torch.tensor([[0, 1.5], [-2, 0]], dtype=torch.float64).to_sparse(layout=layout)
    with pytest.raises(ValueError, match="is sparse, and no law judges the gradient of a sparse tensor"):
        check(Squares, x.clone().requires_grad_())
    with pytest.raises(ValueError, match="is sparse, and no law judges the gradient of a sparse tensor"):
        audit(Squares, [(x,)], wrt=("x",))
    spec = FunctionSpec(
        name="squares",
        function=Squares.apply,
        primal=lambda x: x.to_dense() ** 2,
        surrogate=lambda x: x.to_dense() ** 2,
        wrt=("x",),
        cases=lambda make: [Case(x)],
    )
    verdicts = verify([spec], [NAMED[law] for law in ("vjp", "inputs_untouched", "surrogate")]).verdicts
    assert all(v.finding.is_fault or not v.status.is_failure for v in verdicts)
    assert any("is sparse" in v.finding.message for v in verdicts)
    assert not [v for v in audit(Squares, [(x,)]).report.failures if v.status is Status.BROKEN]
