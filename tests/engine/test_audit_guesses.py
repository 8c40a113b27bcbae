"""The call that `audit --all` guesses from a signature."""

import torch
from torch.autograd import Function

from gradspec._audit._of_module import other_cases, suggested_case
from gradspec.profile import load_profile


class Embedding(Function):
    """A row that is looked up twice loses one of its gradients."""

    @staticmethod
    def forward(ctx, idx, w):
        ctx.save_for_backward(torch.as_tensor(idx) if idx is not None else torch.arange(len(w)))
        ctx.shape = w.shape
        return w[idx] if idx is not None else w.clone()

    @staticmethod
    def backward(ctx, y_bar):
        (idx,) = ctx.saved_tensors
        w_bar = y_bar.new_zeros(ctx.shape)
        w_bar[idx] = y_bar
        return None, w_bar


class Masked(Embedding):
    @staticmethod
    def forward(ctx, x, extra):
        return x * 1 if extra is None else x @ extra.missing

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar, None


class MaskedOrNot(Masked):
    @staticmethod
    def forward(ctx, x, extra: torch.Tensor | None):
        return x * 1 if extra is None else x @ extra.missing


def suggested(function):
    return suggested_case(function, load_profile("quick"), 0)


def test_an_index_is_an_index_in_the_first_place_too():
    assert suggested(Embedding) == "(randint(0, 3, (4,)), randn(3, 3))"


def test_none_is_guessed_only_if_the_annotation_allows_it():
    assert (suggested(Masked), suggested(MaskedOrNot)) == ("", "(randn(4, 3), None)")


class Between(Masked):
    @staticmethod
    def forward(ctx, x, lo, hi):
        return x.clamp(lo, hi)

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar, None, None


def test_two_limits_are_apart_so_that_something_lies_between_them():
    assert suggested(Between) == "(randn(4, 3), -0.5, 0.5)"


class Images(Function):
    @staticmethod
    def forward(ctx, x):
        if x.ndim == 3:
            raise ValueError("images, or one of their rows")
        return x * 1

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar


def test_a_guess_is_held_to_other_numbers_of_dimensions_that_work():
    assert other_cases(Images, "(randn(4, 3),)", load_profile("quick"), 0) == ["(randn(2, 3, 4, 5),)"]
    assert other_cases(Images, "(randn(3, 3),)", load_profile("quick"), 0) == []
