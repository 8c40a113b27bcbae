"""What a watch sees of the calls of a program, and that the program does not see the watch."""

from __future__ import annotations

import functools
import threading
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from gradspec._audit._saved_call import load_call
from gradspec._watch._seen import Seen
from gradspec._watch._store import Store, rows_in
from gradspec._watch._uses import Use, is_asked
from gradspec._watch._watcher import Watcher
from watch.watched import Cubed, Doubled, Wrong

held = Doubled.apply


@pytest.fixture
def watcher():
    watcher = Watcher()
    watcher.start()
    yield watcher
    watcher.stop()
    assert not watcher.troubles


def x(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (3, 4)), requires_grad=True)


def only(watcher: Watcher) -> Seen:
    (seen,) = watcher.functions.values()
    return seen


def test_a_call_through_an_apply_that_was_held_before(watcher):
    held(x()).sum().backward()
    seen = only(watcher)
    assert (seen.key, seen.forwards, seen.backwards) == ("watch.watched:Doubled", 1, 1)
    assert seen.where.rpartition(":")[0].endswith("watched.py")
    assert next(iter(seen.lines)).rpartition(":")[0] == __file__


def test_a_keyword_reaches_forward_by_its_name(watcher):
    y = held(torch.ones(2), factor=5.0)
    assert y.tolist() == [5.0, 5.0]
    assert list(only(watcher).kinds.values()) == ["(float32[2], 5.0)"]


def test_a_forward_that_is_a_classmethod_is_seen_without_its_class(watcher):
    class Shifted(Doubled):
        @classmethod
        def forward(cls, ctx, x, by=1.0):
            return x + by

        @classmethod
        def backward(cls, ctx, grad):
            return grad, None

    y = Shifted.apply(x(2), 3.0)
    y.sum().backward()
    seen = only(watcher)
    assert (seen.forwards, seen.backwards) == (1, 1)
    assert list(seen.kinds.values()) == ["(float32[2], 3.0)"]


@pytest.mark.parametrize("is_separate", [True, False])
def test_a_call_of_a_forward_that_is_inherited_is_one_of_the_class_that_is_called(watcher, is_separate):
    class Common(torch.autograd.Function):
        @classmethod
        def forward(cls, *args):
            return cls.value(args[-1])

        @classmethod
        def backward(cls, ctx, grad):
            return grad

    if is_separate:
        Common.setup_context = staticmethod(lambda ctx, inputs, output: None)

    class Raised(Common):
        value = staticmethod(lambda x: x + 1)

    Raised.apply(x(2)).sum().backward()
    seen = only(watcher)
    assert seen.key.endswith("Raised")
    assert (seen.forwards, seen.backwards) == (1, 1)
    assert list(seen.kinds.values()) == ["(float32[2])"]


class CubedWrongly(Cubed):
    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] ** 2 * grad


def test_a_call_of_an_inherited_forward_without_a_ctx_is_one_of_the_class_that_is_called(watcher):
    CubedWrongly.apply(x(2)).sum().backward()
    seen = only(watcher)

    assert (seen.target, seen.forwards, seen.backwards) == (CubedWrongly, 1, 1)
    assert list(seen.kinds.values()) == ["(float32[2])"]
    line = int(seen.where.rpartition(":")[2])
    assert Path(__file__).read_text(encoding="utf-8").splitlines()[line - 1].startswith("class CubedWrongly")

    Cubed.apply(x(2))
    assert len(watcher.functions) == 2
    watcher.stop()
    assert "forward" not in vars(CubedWrongly)


def test_a_default_that_was_not_given_is_no_argument_of_the_call(watcher):
    class Weighted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor, weight=None):
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad * 2.0, None

    Weighted.apply(x(2), 2.0).sum().backward()
    assert list(only(watcher).kinds.values()) == ["(float32[2], 2.0)"]


def test_a_pass_that_calls_that_of_its_base_is_one(watcher):
    class Again(Doubled):
        @staticmethod
        def forward(ctx, x):
            return Doubled.forward(ctx, x)

        @staticmethod
        def backward(ctx, grad):
            return Doubled.backward(ctx, grad)[0]

    Again.apply(x()).sum().backward()
    seen = only(watcher)
    assert (seen.forwards, seen.backwards) == (1, 1)
    assert seen.key.endswith("Again")


def test_a_module_that_is_an_argument_is_kept_with_its_parameters_as_they_were(watcher):
    class Run(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, module, *parameters):
            return module(x)

        @staticmethod
        def backward(ctx, grad):
            return grad, None, None, None

    layer = torch.nn.Linear(2, 2)
    Run.apply(x(1, 2), layer, *layer.parameters())
    before = layer.weight.tolist()
    with torch.no_grad():
        layer.weight.add_(1)
    (call,) = only(watcher).calls
    kept = call.args[1]
    assert [given is held for given, held in zip(call.args[2:], kept.parameters(), strict=True)] == [True, True]
    assert kept.weight.tolist() == before
    assert kept.weight is not layer.weight


def test_a_call_of_another_kind_is_seen_among_many_alike(watcher):
    for number in range(300):
        held(x(2) if number != 211 else x(2, 2))
    seen = only(watcher)
    assert seen.forwards == 300
    assert list(seen.kinds.values()) == ["(float32[2])", "(float32[2, 2])"]
    assert [tuple(call.args[0].shape) for call in seen.calls] == [(2,), (2, 2)]


def test_a_class_that_is_made_later(watcher):
    class Later(Doubled):
        pass

    Later.apply(x())
    assert only(watcher).key.endswith("<locals>.Later")


def test_a_call_of_forward_by_its_name_is_not_one_of_apply(watcher):
    class Context:
        factor = 1.0

    Doubled.forward(Context(), torch.ones(2))
    assert not watcher.functions


def test_torch_func_is_a_use_and_one_example_of_a_batch_is_kept(watcher):
    torch.func.vmap(torch.func.grad(lambda t: Cubed.apply(t).sum()))(torch.randn(5, 2))
    seen = only(watcher)
    assert Use.FUNC in seen.uses
    assert Use.HIGHER not in seen.uses
    assert [tuple(call.args[0].shape) for call in seen.calls] == [(2,)]


def test_a_second_derivative_is_a_use(watcher):
    t = x()
    (first,) = torch.autograd.grad(held(t).square().sum(), t, create_graph=True)
    assert only(watcher).uses == {Use.HIGHER}
    first.sum().backward()


def test_checkpointing_and_autocast_are_uses(watcher):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        checkpoint(held, x(), use_reentrant=False).sum().backward()
    assert only(watcher).uses == {Use.CHECKPOINT, Use.AUTOCAST}


def test_compiled_code_keeps_one_graph_and_is_traced(watcher):
    compiled = torch.compile(lambda t: held(t, factor=2.5) + Cubed.apply(t), backend="aot_eager", fullgraph=True)
    t = x()
    compiled(t).sum().backward()
    assert torch.allclose(t.grad, 2.5 + 3 * t.detach() ** 2)
    assert {seen.key.rpartition(":")[2]: (seen.traced, seen.uses) for seen in watcher.functions.values()} == {
        "Doubled": (1, {Use.COMPILE}),
        "Cubed": (1, {Use.COMPILE}),
    }


def test_a_module_of_fully_shard_is_a_use(watcher):
    from torch import distributed
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    class Layer(torch.nn.Module):
        def forward(self, t):
            return held(t)

    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        fully_shard(Layer(), mesh=init_device_mesh("cpu", (1,)))(x())
    finally:
        distributed.destroy_process_group()
    assert only(watcher).uses == {Use.FSDP}


def test_export_is_a_use(watcher):
    class Layer(torch.nn.Module):
        def forward(self, t):
            return held(t)

    torch.export.export(Layer(), (x(),))
    assert Use.EXPORT in only(watcher).uses


def test_an_operator_is_seen_however_it_is_called(watcher):
    @torch.library.custom_op("watched_tests::half", mutates_args=())
    def half(t: torch.Tensor) -> torch.Tensor:
        return t / 2

    t = torch.ones(2)
    half(t)
    torch.ops.watched_tests.half(t)
    torch.ops.watched_tests.half.default(t)
    torch.ops.aten.relu(t)
    seen = only(watcher)
    assert (seen.key, seen.forwards, seen.package) == ("watched_tests::half", 3, "watched_tests")


def test_an_operator_without_tensors_has_no_gradient(watcher):
    @torch.library.custom_op("watched_tests::version", mutates_args=())
    def version(number: int) -> int:
        return number

    assert version(3) == 3
    assert not watcher.functions


def test_the_backward_of_an_operator_is_counted(watcher):
    @torch.library.custom_op("watched_tests::third", mutates_args=())
    def third(t: torch.Tensor) -> torch.Tensor:
        return t / 3

    third.register_autograd(lambda ctx, grad: grad / 3)
    t = x()
    third(t).sum().backward()
    seen = only(watcher)
    assert (seen.forwards, seen.backwards, seen.uses) == (1, 1, set())
    torch.autograd.grad(third(t).square().sum(), t, create_graph=True)
    assert seen.uses == {Use.HIGHER}


def test_threads_lose_no_call(watcher):
    def work():
        for _ in range(100):
            held(x(2)).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (only(watcher).forwards, only(watcher).backwards) == (400, 400)


def test_no_mode_of_the_program_sees_the_copies(watcher):
    seen_by_mode = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen_by_mode.append(func)
            return func(*args, **(kwargs or {}))

    with Mode():
        held(torch.ones(2))
    assert torch.ops.aten.clone.default not in seen_by_mode
    assert len(only(watcher).calls) == 1


def test_the_numbers_are_those_of_a_program_without_a_watch():
    def program():
        torch.manual_seed(0)
        weight = x(4, 4)
        for _ in range(3):
            loss = held(torch.nn.functional.dropout(Cubed.apply(x() @ weight))).square().sum()
            (first,) = torch.autograd.grad(loss, weight, create_graph=True)
            first.square().sum().backward()
        return weight.grad, torch.rand(1)

    plain = program()
    watcher = Watcher()
    watcher.start()
    watched = program()
    watcher.stop()
    assert len(watcher.functions) == 2
    assert all(map(torch.equal, plain, watched))


def state():
    return Doubled.forward, Doubled.backward, type(Doubled).__init__, torch._ops.OpOverload.__call__


def test_what_is_stopped_is_as_it_was():
    before = state()
    watcher = Watcher()
    watcher.start()
    assert not any(one is other for one, other in zip(state(), before, strict=True))
    watcher.stop()
    assert state() == before


def test_calls_are_kept_by_kind_and_then_by_size(watcher):
    for shape in ((2, 3), (4, 3), (5, 3), (6, 3), (7, 3)):
        held(x(*shape))
    held(torch.randn(2, dtype=torch.float64))
    assert [str(call.args[0].dtype) for call in only(watcher).kept] == ["torch.float32", "torch.float64"]
    assert [len(call.args[0]) for call in only(watcher).more] == [4, 5]


def test_a_call_of_equal_numbers_gives_way_to_one_that_shows_more(watcher):
    held(torch.zeros(3))
    held(torch.zeros(3))
    held(torch.tensor([1.0, 2.0, 3.0]))
    held(torch.tensor([4.0, 5.0, 6.0]))
    assert [call.args[0].tolist() for call in only(watcher).kept] == [[1.0, 2.0, 3.0]]


def test_a_large_call_is_cut_to_a_few_rows_and_what_is_larger_still_is_not_kept(watcher):
    Wrong.apply(torch.zeros(100, 1000, 20))
    Cubed.apply(torch.zeros(3, 5000, 5000))
    wrong, cubed = watcher.functions.values()
    assert [tuple(call.args[0].shape) for call in wrong.calls] == [(2, 1000, 20)]
    assert not cubed.calls
    assert "MiB for a few rows" in cubed.not_kept


def test_a_call_that_is_cut_keeps_what_requires_a_gradient(watcher):
    Wrong.apply(torch.zeros(100, 1000, 20, requires_grad=True))
    (call,) = only(watcher).calls
    assert call.is_cut
    assert call.args[0].requires_grad


def test_a_file_of_a_call_is_not_that_of_another(watcher, tmp_path):
    store = Store(tmp_path)
    for shape, dtype in (((2, 3), torch.float32), ((4, 3), torch.float32), ((5, 3), torch.float64)):
        held(torch.randn(*shape, dtype=dtype))
        store.note(only(watcher))  # the second is of another size, and then comes one of another kind
    ((_, row),) = rows_in(tmp_path)
    assert [load_call(Path(file))[0][0].shape[0] for file in row.files] == [2, 5, 4]


def test_a_tensor_that_is_given_twice_is_kept_as_one(watcher):
    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    t = x()
    Sum.apply(t, t)
    a, b = only(watcher).calls[0].args
    assert a is b
    assert a.requires_grad
    assert a is not t


def test_a_call_that_trains_is_kept_and_audited_before_those_of_evaluation(watcher):
    for rank in range(1, 7):
        with torch.no_grad():
            Doubled.apply(torch.randn((1,) * rank))
    Doubled.apply(x()).sum().backward()
    assert only(watcher).calls[0].text == "(float32[3, 4])"


@pytest.mark.parametrize(
    ("only", "is_it"),
    [
        ((), True),
        (("mine",), True),
        (("mine.ops",), True),
        (("mine.op",), False),
        (("mine.ops:Round",), False),
        (("other", "mine.ops"), True),
    ],
)
def test_a_function_is_asked_about_by_its_package_or_its_module(only, is_it):
    assert is_asked("mine.ops:Rounded", "mine", only) is is_it


def test_the_rows_of_a_call_that_is_cut_are_in_memory_as_they_were(watcher):
    class Gathered(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, classes):
            return x.sum()

        @staticmethod
        def backward(ctx, y_bar):
            return None, None

    classes = torch.arange(100) % 9
    classes[50], classes[70] = -1, 9
    turned = torch.arange(100 * 20_000.0).reshape(20_000, 100).T
    Gathered.apply(turned, classes)
    x, classes = only(watcher).calls[0].args
    assert classes.tolist() == [0, 1, -1, 9]
    assert torch.equal(x, turned[[0, 1, 50, 70]])
    assert x.stride() == (1, 4)


class Squared(torch.autograd.Function):
    """Right, and what it computes is shared below."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad


class Power(torch.autograd.Function):
    """Right, its forward is a classmethod, and what it computes is shared below."""

    @classmethod
    def forward(cls, ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @classmethod
    def backward(cls, ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad


METHODS = ("forward", "setup_context", "backward")


def with_those_of(giver, kind):
    """Return a class that has the methods of another one, taken in a way."""
    names = [name for name in METHODS if name in vars(giver)]
    if kind == "assigned":
        made = type("Taken", (torch.autograd.Function,), {"__module__": __name__})
        for name in names:
            setattr(made, name, getattr(giver, name))
        return made
    if kind == "assigned to a subclass":
        made = type("Taken", (Doubled,), {"__module__": __name__})
        for name in names:
            setattr(made, name, vars(giver)[name])
        return made
    held = vars(giver) if kind == "as they are held" else {name: getattr(giver, name) for name in names}
    return type("Taken", (torch.autograd.Function,), {"__module__": __name__} | {name: held[name] for name in names})


@pytest.mark.parametrize("kind", ["as functions", "as they are held", "assigned", "assigned to a subclass"])
@pytest.mark.parametrize("giver", [Squared, Cubed, Power], ids=lambda giver: giver.__name__)
def test_a_class_that_has_the_methods_of_another_is_seen_by_itself(watcher, giver, kind):
    taken = with_those_of(giver, kind)
    taken.apply(x(2)).sum().backward()
    with torch.no_grad():
        taken.apply(x(2))
    giver.apply(x(2)).sum().backward()
    counts = {seen.target: (seen.forwards, seen.backwards) for seen in watcher.functions.values()}

    assert counts == {taken: (2, 1), giver: (1, 1)}
    watcher.stop()
    assert [getattr(vars(taken)[name], "__func__", vars(taken)[name]) for name in METHODS if name in vars(giver)] == [
        getattr(vars(giver)[name], "__func__", vars(giver)[name]) for name in METHODS if name in vars(giver)
    ]
    taken.apply(x(2)).sum().backward()
    assert sum(seen.forwards for seen in watcher.functions.values()) == 3


def test_a_class_that_wraps_a_method_of_another_keeps_what_it_wraps(watcher):
    class Negated(torch.autograd.Function):
        @staticmethod
        @functools.wraps(Squared.forward)
        def forward(ctx, x):
            return -Squared.forward(ctx, x)

        @staticmethod
        def backward(ctx, grad):
            return -Squared.backward(ctx, grad)

    y = Negated.apply(torch.full((2,), 3.0, requires_grad=True))
    y.sum().backward()
    assert y.tolist() == [-9.0, -9.0]
    assert (only(watcher).target, only(watcher).forwards, only(watcher).backwards) == (Negated, 1, 1)
    watcher.stop()
    assert Negated.apply(torch.full((2,), 3.0)).tolist() == [-9.0, -9.0]


def test_a_forward_that_is_assigned_while_the_watch_runs_is_seen(watcher):
    made = type("Made", (torch.autograd.Function,), {"__module__": __name__})
    made.forward = staticmethod(lambda ctx, x: 5 * x)
    made.backward = staticmethod(lambda ctx, grad: 5 * grad)
    before = vars(torch.autograd.function.FunctionMeta)
    made.apply(x(2)).sum().backward()
    assert (only(watcher).forwards, only(watcher).backwards) == (1, 1)
    watcher.stop()
    assert "__setattr__" not in before


def test_a_backward_that_torch_func_calls_is_one_of_the_class_that_inherits_it(watcher):
    class Same(Cubed):
        pass

    torch.func.grad(lambda t: Same.apply(t).sum())(torch.randn(2))
    assert (only(watcher).target, only(watcher).forwards, only(watcher).backwards) == (Same, 1, 1)


def test_a_hook_that_a_program_holds_tells_nothing_after_the_end(watcher):
    kept = Cubed.forward
    watcher.stop()
    kept(x(2))
    assert not watcher.functions
    watcher.start()
    Cubed.apply(x(2))
    assert only(watcher).forwards == 1


def test_a_backward_of_another_class_that_is_called_is_no_call_of_that_class(watcher):
    class Other(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return Squared.forward(ctx, x)

        @staticmethod
        def backward(ctx, grad):
            return Squared.backward(ctx, grad)

    Other.apply(x(2)).sum().backward()
    assert (only(watcher).target, only(watcher).forwards, only(watcher).backwards) == (Other, 1, 1)
