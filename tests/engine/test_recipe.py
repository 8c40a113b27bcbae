"""A call written as text: what it makes, and that nothing else is ever run."""

import pytest
import torch

from gradspec._audit._case_syntax import RecipeError, read_case


def test_literals_and_keywords_are_what_they_say():
    case = read_case("(1, -2.5, 'text', True, None, [1, (2, 3)], inf, -nan, level='batch')")

    assert case.args[:6] == (1, -2.5, "text", True, None, [1, (2, 3)])
    assert case.args[6] == float("inf")
    assert case.args[7] != case.args[7]
    assert case.kwargs == {"level": "batch"}


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [
        ("randn(2, 3)", [2, 3], torch.float64),
        ("rand(2, dtype=float32)", [2], torch.float32),
        ("zeros(0, 4, dtype=torch.bfloat16)", [0, 4], torch.bfloat16),
        ("full((2, 3), 0.5)", [2, 3], torch.float64),
        ("arange(4)", [4], torch.int64),
        ("randint(0, 10, (5,))", [5], torch.int64),
        ("tensor([[1.0, 2.0]])", [1, 2], torch.float64),
        ("tensor([True])", [1], torch.bool),
        ("ones(())", [], torch.float64),
        ("torch.randn(2, 3, dtype=torch.float32)", [2, 3], torch.float32),
        ("torch.tensor(0.5)", [], torch.float64),
        ("arange(0.0, 1.0, 0.25)", [4], torch.float64),
        ("arange(0.0, 1.0, 0.25, dtype=float32)", [4], torch.float32),
    ],
)
def test_a_tensor_by_recipe(text, shape, dtype):
    (tensor,) = read_case(text).args

    assert (list(tensor.shape), tensor.dtype) == (shape, dtype)


@pytest.mark.parametrize("number", [0.1, 1e-200, 1e300, 16777217.0])
def test_a_number_is_the_one_that_is_written(number):
    for text in (f"tensor({number})", f"tensor([{number}])"):
        assert read_case(text).args[0].item() == number


def test_random_recipes_differ_in_a_case_and_agree_between_runs():
    first, second = read_case("(randn(3), randn(3))").args
    again, _ = read_case("(randn(3), randn(3))").args
    other, _ = read_case("(randn(3), randn(3))", seed=1).args
    seeded, twin = read_case("(randn(3, seed=5), randn(3, seed=5))").args

    assert not torch.equal(first, second)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(seeded, twin)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(x,", "is not a call: write the arguments as in (randn(2, 3), 0.5)"),
        ("(1)(2)", "is more than one call"),
        ("(__import__('os').system('true'),)", "\"__import__('os').system('true')\" cannot stand in the case"),
        ("(ones(2).numpy(),)", "'ones(2).numpy()' cannot stand in the case"),
        ("(torch.load('a'),)", "an argument is a literal or one of randn"),
        ("(torch.torch.randn(2),)", "'torch.torch.randn(2)' cannot stand in the case"),
        ("(10**12,)", "'10 ** 12' cannot stand in the case"),
        ("(x,)", "'x' cannot stand in the case '(x,)': an argument is a literal or one of randn"),
        ("([i for i in arange(3)],)", "cannot stand in the case"),
        ("(lambda: 0,)", "cannot stand in the case"),
        ("(-'a',)", "only numbers and tensors have a sign"),
        ("(**1)", "name each argument"),
        ("(*[1],)", "cannot stand in the case"),
        ("(randn(2, dtype=float33),)", "the dtypes are float64, float32"),
        ("(randn(2, device='cuda'),)", "the keywords of randn are dtype, seed and requires_grad"),
        ("(randn(2, seed=inf),)", "'randn(2, seed=inf)' cannot stand in the case"),
        ("(randn(2, seed=1j),)", "'randn(2, seed=1j)' cannot stand in the case"),
        ("(randn(2, seed=99999999999999999999),)", "cannot stand in the case"),
        ("(randn('a'),)", "torch says: randn() received an invalid combination"),
    ],
)
def test_anything_else_is_refused_in_one_line(text, message):
    with pytest.raises(RecipeError) as refused:
        read_case(text)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "shape", "strides"),
    [
        ("(eye(3),)", (3, 3), (3, 1)),
        ("(linspace(0, 1, 5),)", (5,), (1,)),
        ("(3 * randn(3, 4) - 1,)", (3, 4), (4, 1)),
        ("(-rand(3),)", (3,), (1,)),
        ("(randn(4, 3).T,)", (3, 4), (1, 3)),
        ("(randn(3, 2, 4).transpose(0, 1).requires_grad_(),)", (2, 3, 4), (4, 8, 1)),
        ("(ones(3).expand(4, 3),)", (4, 3), (0, 1)),
        ("(randn(4, 6)[1:, ::2],)", (3, 3), (6, 2)),
        ("(torch.cos(arange(6.0)).view(2, 3),)", (2, 3), (3, 1)),
        ("(softmax(randn(2, 3), 1),)", (2, 3), (3, 1)),
        ("(cat([2 * randn(6), tensor([-1.0, 1.0])]),)", (8,), (1,)),
        ("(stack([ones(2), zeros(2), rand(2)], 1),)", (2, 3), (3, 1)),
    ],
)
def test_parts_multiples_and_layouts_of_a_tensor(text, shape, strides):
    (value,) = read_case(text).args
    assert (tuple(value.shape), value.stride()) == (shape, strides)
    assert value.dtype is torch.float64
    assert value.is_leaf
    assert value.requires_grad is ("requires_grad_" in text)


def test_a_part_of_a_call_is_drawn_as_the_whole_is():
    (whole,), (part,) = (read_case(text, seed=3).args for text in ("(randn(4, 6),)", "(2 * randn(4, 6)[0],)"))
    assert torch.equal(part, 2 * whole[0])


def test_numbers_of_other_kinds():
    small, both = read_case("(randint(-8, 8, (5, 4), dtype=int8), complex(randn(3), randn(3)))").args
    assert (small.dtype, both.dtype) == (torch.int8, torch.complex128)


def test_a_generator_is_one_of_its_own_each_time():
    call = "(ones(2), generator=torch.Generator().manual_seed(3))"
    first, second = (read_case(call).kwargs["generator"] for _ in range(2))

    assert first is not second
    assert torch.equal(torch.rand(3, generator=first), torch.rand(3, generator=second))
    assert first.initial_seed() == 3


def test_a_mask_a_product_and_a_sparse_matrix():
    mask, matrix, sparse = read_case("(randn(40) > 0, randn(3, 2) @ ones(2, 5) ** 2, eye(3).to_sparse())").args

    assert mask.dtype == torch.bool
    assert 0 < int(mask.sum()) < 40
    assert matrix.shape == (3, 5)
    assert torch.equal(matrix[:, 0], matrix[:, 4])
    assert sparse.layout == torch.sparse_coo


def test_what_has_a_name_stands_again_behind_it():
    definite, factor, same = read_case("((a := randn(3, 3)) @ a.T + eye(3), a, b := a)").args

    assert torch.equal(definite, factor @ factor.T + torch.eye(3))
    assert same is factor
    with pytest.raises(ValueError, match=r"'a' cannot stand in the case '\(a, \(a := randn\(3\)\)\)'"):
        read_case("(a, (a := randn(3)))")
