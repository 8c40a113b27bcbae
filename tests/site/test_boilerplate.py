"""The counter of copied words, held to texts whose share is known; `test_site.py` counts the built pages."""

from __future__ import annotations

import json

import pytest
import torch

from boilerplate import HASHES, copied, docstrings, known, ngrams, passages, share

#: A page as autodoc makes it of a Function without docstrings: the sentences are torch's.
COPIED = """
static backward(ctx, grad)

Define a formula for differentiating the operation with backward mode automatic differentiation.

This function is to be overridden by all subclasses. It must accept a context ctx as the first argument, followed by
as many outputs as the forward() returned (None will be passed in for non tensor outputs of the forward function),
and it should return as many tensors, as there were inputs to forward().
"""

OWN = """
Passes its input on and multiplies the gradient by a factor. The output is a view: no memory is copied. Call it as
GradFactor.apply(x, f), or by its wrapper grad_factor(x, factor=0.5) in code of your own.
"""


def test_torchs_sentences_are_found() -> None:
    assert share(COPIED, known()) > 0.6


def test_own_sentences_are_not() -> None:
    assert passages(OWN, known()) == []


def test_share_counts_each_word_once() -> None:
    grams = ngrams("a b c d e f")
    assert share("x a b c d e f y z w", grams) == pytest.approx(0.6)


def test_five_words_are_a_copy_and_four_are_none() -> None:
    grams = ngrams("a b c d e")
    assert copied("a b c d x a b c d e", grams) == [False] * 5 + [True] * 5


def test_markup_and_case_hide_nothing() -> None:
    grams = ngrams("must accept a context ctx as the first argument")
    assert share("It MUST accept a context :attr:`ctx` as the *first* argument,", grams) == pytest.approx(9 / 10)


def test_passages_are_shown_in_words() -> None:
    assert passages("mine this function is to be overridden mine", known()) == ["this function is to be overridden"]


def test_hashes_are_those_of_the_installed_torch() -> None:
    version = json.loads(HASHES.read_text(encoding="utf-8"))["torch"]
    if torch.__version__.partition("+")[0] != version:
        pytest.skip(f"the hashes are of torch {version}, installed is {torch.__version__}")
    assert {gram for _, doc in docstrings() for gram in ngrams(doc)} == set(known())
