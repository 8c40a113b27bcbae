r"""How far rounding may take each element of a result: a bound derived from the reference, and from no table.

The reference runs in float64 on the numbers that the function was given. Then it runs again, with every operation off
at random by the unit of rounding of a lower precision: what its results scatter is what this precision leaves
undecided (Vignes, A stochastic arithmetic for reliable scientific computation, 1993).

.. math::

    \tau_i = u\,|y_i| + \lambda\,S_i + n\,u_a \max |y|, \qquad \lambda = \sqrt{2 \ln (2N / p)}

:math:`u` is the unit of the dtype of the result, S the root mean square of the scatter, n the length of the longest sum
and :math:`u_a` the unit in which it is added up. Of N independent errors of mean zero one lies beyond :math:`\lambda`
of them with the probability p (Higham and Mary, A new approach to probabilistic rounding error analysis, 2019). An
operation that sums n terms errs by n units on each (Higham, Accuracy and Stability of Numerical Algorithms, 2002,
section 4.2); the last term is what is left of such a sum where another formula than the reference's lets terms cancel.
Beyond that a result is as right as the precision allows if it is right for arguments off by the unit in which it is
computed: a backward stable function promises no more (section 1.5 there).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from gradspec.laws.tensor.support._call import differentiable
from gradspec.laws.tensor.support._differences import double
from gradspec.spec import Accuracy

#: What runs the reference: it returns results of the same number and shapes each time, None where there is none.
Compute = Callable[[], Sequence[Tensor | None]]
#: Runs it on arguments that are off at random by a unit of rounding, under a seed.
Near = Callable[[float, int], Sequence[Tensor | None]]
#: How often the reference runs with operations that err, and how improbable a larger error of a sound function is.
RUNS, IMPROBABLE = 16, 1e-9
#: How often it runs on arguments that are off, and how much less the second time, where a kink moves results as far.
NEAR, LESS = 3, 64
#: From how many elements on a result is large, so that its runs are not kept.
LARGE = 2**18
#: How far below the largest number of its dtype a result must lie for an infinity to be the function's mistake.
HEADROOM = 64
#: Operations that move numbers, compare or choose them, or change their sign: none of them rounds.
_NAMES = """
    _to_copy abs alias amax amin arange argmax argmin bitwise_and bitwise_not bitwise_or bitwise_xor cat ceil clamp
    clamp_max clamp_min clone constant_pad_nd copy copy_ detach diag_embed embedding empty empty_like empty_strided eq
    eye fill fill_ flip floor full full_like gather ge gt index index_put index_put_ index_select isfinite isinf isnan
    le logical_and logical_not logical_or logical_xor lt masked_fill masked_fill_ masked_scatter max maximum min minimum
    ne neg neg_ new_empty new_empty_strided new_full new_ones new_zeros nonzero ones ones_like relu relu_ repeat roll
    round scalar_tensor scatter scatter_ select_backward select_scatter sgn sign slice_backward slice_scatter sort stack
    threshold_backward topk tril triu trunc where zero_ zeros zeros_like
"""
_EXACT = frozenset(_NAMES.split())
#: What gives an integer of integers: a sum or a product that no dtype rounds below the inverse of its unit.
_OF_INTEGERS = ("add", "sub", "rsub", "mul")
#: Operations of several steps that round at each: torch says which steps.
_FUSED_NAMES = """
    _fused_rms_norm _fused_rms_norm_backward _log_softmax _log_softmax_backward_data _native_batch_norm_legit
    _native_batch_norm_legit_no_training _softmax _softmax_backward_data elu elu_backward gelu gelu_backward glu
    glu_backward hardswish huber_loss linalg_vector_norm log_sigmoid_backward log_sigmoid_forward logit logsumexp mish
    mse_loss mse_loss_backward native_batch_norm native_batch_norm_backward native_group_norm native_group_norm_backward
    native_layer_norm native_layer_norm_backward nll_loss_backward nll_loss_forward norm sigmoid_backward silu
    silu_backward smooth_l1_loss softplus softplus_backward std tanh_backward var var_mean
"""
_FUSED = frozenset(_FUSED_NAMES.split())
#: Products whose sums have the length of the last dimension of an operand, by the place of this operand.
_PRODUCTS = {"mm": 0, "bmm": 0, "mv": 0, "dot": 0, "vdot": 0, "addmm": 1, "addmv": 1, "baddbmm": 1, "addbmm": 1}
#: Sums whose length is the share of the numbers that go into one, of one axis, or of those that an index sends there.
_REDUCTIONS = ("sum", "mean", "prod", "nansum")
_SCATTERED = ("scatter_add", "scatter_reduce", "index_add", "embedding_dense_backward", "segment_reduce")
_RUNNING = ("cumsum", "cumprod", "logcumsumexp")


@dataclass(frozen=True)
class Units:
    """The units of rounding of a program: u of the dtype in which a result is stored, and of the one that sums."""

    stored: float
    summed: float
    #: The least number that is stored: nearer to zero, results are rounded absolutely.
    least: float = 0.0

    @classmethod
    def of(cls, stored: torch.dtype, summed: torch.dtype) -> Units:
        """Return the units of two dtypes."""
        kind = torch.finfo(stored)
        # Of the types with the exponents of float32, numbers below the normal ones may be flushed to zero.
        least = kind.smallest_normal * (kind.eps if stored is torch.float16 else 1)
        return cls(kind.eps / 2, torch.finfo(summed).eps / 2, least)


class RoundedOperations(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """While it is entered, what an operation of torch computes is off, at random, as rounding would make it."""

    def __init__(self, units: Units, seed: int) -> None:
        """Take the units of rounding and the seed of the errors."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.units, self.generator = units, torch.Generator().manual_seed(seed)
        #: How many terms the longest sum has had so far.
        self.longest = 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation and round what it returns or writes; a view of something computes nothing."""
        kwargs = kwargs or {}
        name, is_exact = _named(func)
        if is_exact:
            return func(*args, **kwargs)
        if not func._schema.is_mutable:  # within a mode torch conjugates and negates nothing of itself
            args = [one.resolve_conj().resolve_neg() if isinstance(one, Tensor) else one for one in args]
        if name in _FUSED and (steps := decomposition_table.get(func)) is not None:
            with self:
                return steps(*args, **kwargs)
        whole = _is_whole(args, kwargs) if name.rstrip("_") in _OF_INTEGERS else None
        if (length := _length(name, args)) > 1:
            self.longest, unit = max(self.longest, length), length * self.units.summed
            found = func(*(self._off(value, unit) for value in args), **kwargs)
        else:
            found = func(*args, **kwargs)
        for value in found if isinstance(found, tuple | list) else (found,):
            if _is_rounded(value):
                error = self._errors(value)
                if whole is not None:
                    error = error.where(~(whole & (value.abs() * self.units.stored <= 1)), 0)
                # In turn, so that what is infinite, as behind a mask, stays so, and a zero stays one.
                value.addcmul_(value.sgn(), error, value=self.units.least).mul_(error.mul_(self.units.stored).add_(1))
        return found

    def _off(self, value: Any, unit: float) -> Any:
        return value * self._errors(value).mul_(unit).add_(1) if _is_rounded(value) else value

    def _errors(self, value: Tensor) -> Tensor:
        error = torch.empty(value.shape, dtype=torch.float64).uniform_(-1, 1, generator=self.generator)
        return error.to(value.device)


@cache
def _named(func: Any) -> tuple[str, bool]:
    """Return the name of an operation, and whether it rounds nothing: a view of something computes nothing either."""
    name, aliases = func.overloadpacket.__name__, [one.alias_info for one in func._schema.returns]
    return name, name in _EXACT or any(one is not None and not one.is_write for one in aliases)


def _is_whole(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return where every operand of an operation on elements is an integer; None where that is not asked."""
    whole: Any = torch.tensor(True)
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor) and (value.is_complex() or value.layout is not torch.strided):
            return None
        if isinstance(value, Tensor):
            whole = whole & (value == value.round() if value.is_floating_point() else True)
        elif isinstance(value, float):
            whole = whole & value.is_integer()
    return whole


def _is_rounded(value: Any) -> bool:
    return differentiable(value) and value.layout is torch.strided and value.numel() > 0


def _length(name: str, args: Sequence[Any]) -> int:
    """Return how many terms an operation adds up for an element of its result at most; 1 for one that adds none."""
    tensors = [value for value in args if isinstance(value, Tensor)]
    if (place := _PRODUCTS.get(name)) is not None:
        return int(args[place].shape[-1])
    if name in _REDUCTIONS:
        over = args[1] if len(args) > 1 else None
        dims = [over] if isinstance(over, int) else over
        return math.prod(tensors[0].shape[dim] for dim in dims) if dims and tensors[0].ndim else tensors[0].numel()
    if name.startswith("convolution"):
        weight = tensors[1] if name == "convolution" else tensors[2]
        of_weight = max(weight.numel() // max(weight.shape[0], 1), 1)
        # The gradient of a weight is a sum over the samples and the places.
        y_bar = None if name == "convolution" else tensors[0]
        return of_weight if y_bar is None else max(of_weight, y_bar.numel() // max(y_bar.shape[1], 1))
    if name.startswith("_fft_"):  # it adds in pairs: what cancels in an element leaves their rounding
        return 1 + math.ceil(math.log2(max(math.prod(tensors[0].shape[dim] for dim in args[1]), 2)))
    if name in _RUNNING and tensors[0].ndim:
        return int(tensors[0].shape[args[1]])
    if name in _SCATTERED:
        return max((value.shape[0] for value in tensors if not differentiable(value) and value.ndim), default=1)
    return 1


class Limits:
    """One result in float64, and how far a function of a lower precision may be off, element by element."""

    def __init__(
        self,
        right: Tensor,
        dtype: torch.dtype,
        scattered: Callable[[], Tensor],
        off: Callable[[], float],
        near: Callable[[], Tensor | float],
    ) -> None:
        """Take what is right and what rounding makes of it.

        Args:
            right: the result in float64.
            dtype: in which the function returns it.
            scattered: returns how far each run that is rounded at random is off, along the first dimension.
            off: returns how far a result may be off of its largest element: what the spec declares, and what is left of
                a longest sum whose terms cancel in another formula than the reference's.
            near: returns how far each element moves where the arguments are off by rounding, as a root mean square.
        """
        self.right, self.kind, self.scattered, self.off, self.near = right, torch.finfo(dtype), scattered, off, near
        self.unit, self.size = self.kind.eps / 2, right.abs()

    @property
    def close(self) -> Tensor:
        """How near every sound function may lie: twice the unit of the dtype."""
        return 2 * self.unit * self.size + self.kind.tiny

    @cached_property
    def allowed(self) -> Tensor:
        """How far each element may be off."""
        #   tau_i = u |y_i| + lambda S_i + (n u_a, or what is declared) max |y| + 2 tiny
        factor, tiny = beyond(self.size.numel()), 2 * self.kind.tiny
        return self.unit * self.size + factor * self._scatter + self.off() * self.size.max() + tiny

    @cached_property
    def expected(self) -> Tensor:
        """The error that is to be expected of each element, as a root mean square."""
        return (self._scatter.square() + (self.unit * self.size).square() / 3).sqrt()

    @cached_property
    def _scatter(self) -> Tensor:
        return self.scattered().abs().square().mean(0).sqrt()

    def wrong(self, got: Tensor) -> Tensor:
        """Return which elements are farther off than rounding takes them, of a result in its own dtype."""
        wide = double(got)
        # Beside the largest number of a dtype the order of the operations decides whether one of them overflows.
        overflows = ~got.isfinite() & ~(self.size < self.kind.max / HEADROOM)
        error = (wide - self.right).abs()
        wrong = ~(wide == self.right) & ~overflows & ~(error <= self.close)  # rather than `>`: a NaN is wrong
        wrong = wrong & ~(error <= self.allowed) if bool(wrong.any()) else wrong
        if not bool(wrong.any()):
            return wrong
        # What is right for arguments that nobody could tell from these is as right as this precision allows.
        return wrong & ~(error <= self.allowed + beyond(self.size.numel()) * self.near())

    def gain(self, got: Tensor) -> float:
        """Return by which factor a result in half precision is too large, in float64; one if rounding may be it.

        Errors of rounding know nothing of the answer. Their mean along it is as small as the runs that are rounded at
        random say, and a factor of a thousandth, which no element shows, lies far beyond.

        Args:
            got: what the function returned, in float64.
        """
        if self.unit <= torch.finfo(torch.float32).eps:
            return 1.0
        # Equal numbers are rounded equally: of each there is one error.
        is_there = (self.size > self.kind.tiny) & self.right.isfinite() & got.isfinite() & _first_of_each(self.right)
        relative = ((got - self.right) / self.right).real.where(is_there, 0)
        count = max(int(is_there.sum()), 1)
        # The mean of the relative errors is off by the same factor: where storing explains it, no run is made.
        if abs(float(relative.sum()) / count) <= beyond(1) * self.unit / math.sqrt(3 * count):
            return 1.0
        right, weight = self.right.where(is_there, 0), self.expected.square().reciprocal().where(is_there, 0)
        #   b = sum w y (K - y) / sum w y^2,   w = 1 / s^2
        along = weight * right.conj()
        total = float((along * right).real.sum())
        if not total > 0:
            return 1.0
        off = torch.cat([(got - right)[None], self.scattered()]).where(is_there, 0)
        mine, *others = ((along * off).real.reshape(len(off), -1).sum(1) / total).tolist()
        # Of the rounding of the result itself the mean of so many elements is left.
        stored = self.unit / math.sqrt(3) * float((along * right).abs().square().sum().sqrt()) / total
        by_rounding = math.sqrt(sum(one**2 for one in others) / len(others) + stored**2)
        return 1 + mine if abs(mine) > beyond(1) * by_rounding + self.off() else 1.0


class Bound:
    """A reference's results in float64, and how far a function of a lower precision may be off, element by element."""

    def __init__(
        self, compute: Compute, units: Units, seed: int, *, off: float = 0.0, near: Near | None = None
    ) -> None:
        """Run the reference; its scatter is found where it is asked for.

        Args:
            compute: runs the reference in float64.
            units: the units of rounding in which a sound function computes.
            seed: of the errors.
            off: what the spec declares beside rounding, of the largest element.
            near: runs it on arguments that are off.
        """
        self.compute, self.units, self.seed, self.off, self.near = compute, units, seed, off, near
        self._longest = 1
        # Of an index or a mask nothing is rounded.
        self.right = [None if one is None or not differentiable(one) else one.detach() for one in compute()]

    def limits(self, place: int, dtype: torch.dtype) -> Limits | None:
        """Return the limits of a result that is stored in a dtype; None where there is no result to be off from."""
        right = self.right[place]
        if right is None or not right.numel():
            return None
        off, near = lambda: max(self.off, self._of_the_longest_sum), lambda: self._moved[place]
        return Limits(right, dtype, lambda: self._scattered[place], off, near)

    @property
    def _of_the_longest_sum(self) -> float:
        return self._longest * self.units.summed

    @cached_property
    def _scattered(self) -> list[Tensor]:
        runs: list[list[Tensor]] = [[] for _ in self.right]
        for k in range(RUNS):
            with sdpa_kernel(SDPBackend.MATH), RoundedOperations(self.units, self.seed + k) as rounded:
                found = self.compute()
            self._longest = max(self._longest, rounded.longest)
            for kept, one, right in zip(runs, found, self.right, strict=True):
                if right is None:
                    continue
                off = torch.zeros_like(right) if one is None else one.detach() - right
                if right.numel() <= LARGE:
                    kept.append(off)
                else:  # of a large result the mean square, in place of every run
                    square = off.abs().square().div_(RUNS)
                    kept[:] = [kept[0] + square if kept else square]
        of_runs = [torch.stack(kept) if kept else torch.zeros(1) for kept in runs]
        return [one.sqrt() if len(one) < RUNS else one for one in of_runs]

    @cached_property
    def _moved(self) -> list[Tensor | float]:
        """How far results move with the arguments, where they move as little as these do: not so beside a kink."""
        if self.near is None:
            return [0.0 for _ in self.right]
        far, close = (self._off_by(self.units.summed / less) for less in (1, LESS))
        return [
            one if isinstance(one, float) else one.where(other <= one * LESS**-0.5, 0)
            for one, other in zip(far, close, strict=True)
        ]

    def _off_by(self, unit: float) -> list[Tensor | float]:
        """Return the root mean squares of how far results move where the arguments are off by a unit."""
        assert self.near is not None
        squares: list[Tensor | float] = [0.0 for _ in self.right]
        for k in range(NEAR):
            for place, (one, right) in enumerate(zip(self.near(unit, self.seed + k), self.right, strict=True)):
                if one is not None and right is not None:
                    squares[place] = squares[place] + (one.detach() - right).abs().square() / NEAR
        return [one if isinstance(one, float) else one.sqrt() for one in squares]


def _first_of_each(numbers: Tensor) -> Tensor:
    """Return where a number of a tensor stands for the first time."""
    flat = torch.view_as_real(numbers.resolve_conj()).reshape(-1, 2) if numbers.is_complex() else numbers.flatten()
    # Of rows torch finds it ten times as slowly.
    _, which = flat.unique(dim=0 if numbers.is_complex() else None, return_inverse=True)  # type: ignore[no-untyped-call]
    places = torch.arange(len(flat), device=flat.device)
    first = places.new_full((len(flat),), len(flat)).scatter_reduce_(0, which, places, "amin")
    return (first[which] == places).view(numbers.shape)


def beyond(count: int) -> float:
    """Return how many root mean squares the largest of some independent errors lies below, but for the improbable."""
    return math.sqrt(2 * math.log(2 * max(count, 1) / IMPROBABLE))


def lowest(values: Iterable[Any]) -> torch.dtype | None:
    """Return the real dtype of the widest unit of rounding among tensors; None if none is below float64."""
    found = {value.dtype.to_real() for value in values if differentiable(value)} - {torch.float64}
    return max(found, key=lambda dtype: torch.finfo(dtype).eps, default=None)


def dtype_of_all(values: Sequence[Any]) -> torch.dtype:
    """Return the dtype that has as few digits as all tensors; float64 where something has more."""
    found = {t.dtype.to_real() for t in values if differentiable(t)}
    return torch.float64 if torch.float64 in found else lowest(values) or torch.float64


def units_of(spec: Any, dtype: torch.dtype) -> Units:
    """Return the units in which a sound function of a spec computes with tensors of a dtype."""
    accuracy = getattr(spec, "accuracy", Accuracy())
    usual = torch.float32 if torch.finfo(dtype).eps > torch.finfo(torch.float32).eps else dtype
    return Units.of(accuracy.store or dtype, accuracy.accumulate or usual)


def declared(spec: Any, elements: int) -> float:
    """Return how far a result may be off beside rounding, of its largest element: as the spec declares."""
    accuracy = getattr(spec, "accuracy", None)
    if accuracy is None:
        return 0.0
    # The largest of N independent errors of one standard deviation, at the same probability as those of rounding.
    return max(float(accuracy.rtol), beyond(elements) * float(accuracy.standard_error))
