"""Five shims for Triton's interpreter, which let it run published kernels, unchanged, on a CPU.

1. Triton compiles a Python float argument as a float32 scalar. The interpreter of 3.9 leaves it a Python float,
   on which `eps.to(tl.float32)` fails: it is wrapped as the compiler would.
2. `libdevice` functions exist only as links to CUDA's bitcode. Those that the kernels use are given numpy's.
3. A package that asks for the active driver, the number of multiprocessors or the capability gets a small,
   fixed answer, as there is no device.
4. Autotuning would time the configurations; the first one is taken, so that a run can be repeated.
5. The interpreter keeps bfloat16 as uint16 and computes with those integers: a product of two bfloat16 tensors
   comes out as garbage. Arithmetic on them goes through float32 and is rounded to nearest even, as on a GPU.
"""

import os
from types import SimpleNamespace
from typing import Any


def prepare() -> None:
    """Set up Triton's interpreter. Call it before a package with Triton kernels is imported."""
    os.environ["TRITON_INTERPRET"] = "1"
    import triton

    # Its own functions (tl.sum, tl.sigmoid) are bound when it is imported.
    if type(triton.language.standard.sigmoid).__name__ != "InterpretedFunction":
        raise RuntimeError("Triton was imported before TRITON_INTERPRET=1 was set: set it in the environment")
    if getattr(triton, "_prepared_for_the_laboratory", False):
        return
    triton._prepared_for_the_laboratory = True
    _wrap_floats()
    _supply_libdevice()
    _pretend_a_driver()
    _take_the_first_configuration()
    _compute_in_bfloat16()


def _wrap_floats() -> None:
    import numpy as np
    import triton.language as tl
    from triton.runtime import interpreter

    published = interpreter._implicit_cvt

    def convert(value: Any) -> Any:
        if isinstance(value, float):
            return tl.tensor(interpreter.TensorHandle(np.array([value], dtype=np.float32), tl.float32), tl.float32)
        return published(value)

    interpreter._implicit_cvt = convert


def _supply_libdevice() -> None:
    import numpy as np
    import triton.language as tl
    from triton.language.extra import libdevice as either
    from triton.language.extra.cuda import libdevice as cuda
    from triton.runtime.interpreter import TensorHandle

    def elementwise(function: Any) -> Any:
        def call(*values: Any, **_: Any) -> Any:
            first = next(value for value in values if isinstance(value, tl.tensor))
            with np.errstate(all="ignore"):
                data = function(
                    *(_widened(value.handle) if isinstance(value, tl.tensor) else value for value in values)
                )
            if first.handle.dtype.scalar == tl.bfloat16:
                return tl.tensor(TensorHandle(_rounded(data), first.handle.dtype), first.type)
            return tl.tensor(TensorHandle(data.astype(first.handle.data.dtype), first.handle.dtype), first.type)

        return call

    supplied = {
        "tanh": np.tanh,
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "exp": np.exp,
        "exp2": np.exp2,
        "log": np.log,
        "log1p": np.log1p,
        "log2": np.log2,
        "pow": np.power,
        "fast_expf": np.exp,
        "fast_dividef": np.divide,
        "div_rn": np.divide,
        "isnan": np.isnan,
    }
    for module in (either, cuda):
        for name, function in supplied.items():
            setattr(module, name, elementwise(function))


def _pretend_a_driver() -> None:
    import torch
    from triton.runtime import driver

    properties = {
        "multiprocessor_count": 2,
        "max_shared_mem": 65536,
        "num_aicore": 2,
        "num_vectorcore": 2,
        "warpSize": 32,
    }
    target = SimpleNamespace(backend="cuda", arch=80, warp_size=32)
    driver.set_active(
        SimpleNamespace(
            utils=SimpleNamespace(get_device_properties=lambda _: dict(properties)),
            get_current_target=lambda: target,
            get_current_device=lambda: 0,
            get_current_stream=lambda _=None: 0,
            get_active_torch_device=lambda: torch.device("cpu"),
            get_device_interface=lambda: torch.cpu,
        )
    )
    torch.cuda.get_device_properties = lambda *_: SimpleNamespace(  # type: ignore[assignment]
        multi_processor_count=2, major=8, minor=0, name="none", total_memory=2**33
    )
    torch.cuda.get_device_capability = lambda *_: (8, 0)


def _take_the_first_configuration() -> None:
    from triton.runtime import autotuner

    published = autotuner.Autotuner.run

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.configs = self.configs[:1]
        return published(self, *args, **kwargs)

    autotuner.Autotuner.run = run


def _widened(handle: Any) -> Any:
    """The numbers of a handle, those in bfloat16 as float32."""
    import numpy as np
    import triton.language as tl

    if handle.dtype.scalar == tl.bfloat16 and handle.data.dtype == np.uint16:
        return (handle.data.astype(np.uint32) << 16).view(np.float32)
    return handle.data


def _rounded(numbers: Any) -> Any:
    """The bits of the nearest bfloat16, ties to even."""
    import numpy as np

    numbers = np.ascontiguousarray(numbers, dtype=np.float32)
    bits = numbers.view(np.uint32)
    nearest = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(numbers), np.uint16(0x7FC0), nearest)


def _compute_in_bfloat16() -> None:
    import numpy as np
    import triton.language as tl
    from triton.runtime.interpreter import InterpreterBuilder, ReduceOps, ScanOps, TensorHandle

    def is_bfloat16(handle: Any) -> bool:
        return bool(handle.dtype.scalar == tl.bfloat16 and handle.data.dtype == np.uint16)

    def through_float32(published: Any) -> Any:
        def operate(self: Any, *handles_and_op: Any) -> Any:
            *handles, op = handles_and_op
            if not is_bfloat16(handles[0]):
                return published(self, *handles, op)
            wide = [TensorHandle(_widened(handle), tl.float32) for handle in handles]
            with np.errstate(all="ignore"):
                result = op(*(handle.data for handle in wide))
            if result.dtype == np.bool_:
                return published(self, *wide, op)
            return TensorHandle(_rounded(result), tl.bfloat16)

        return operate

    for name in ("binary_op", "unary_op", "ternary_op"):
        setattr(InterpreterBuilder, name, through_float32(getattr(InterpreterBuilder, name)))

    def fma(self: Any, x: Any, y: Any, z: Any) -> Any:
        if is_bfloat16(x):
            return TensorHandle(_rounded(_widened(x) * _widened(y) + _widened(z)), tl.bfloat16)
        return TensorHandle(x.data * y.data + z.data, z.dtype.scalar)

    published_cast = InterpreterBuilder.cast_impl

    def cast(self: Any, source: Any, to: Any) -> Any:
        if is_bfloat16(source):
            if to.scalar == tl.bfloat16:
                return source
            source = TensorHandle(_widened(source), tl.float32)
        elif to.scalar == tl.bfloat16:
            return TensorHandle(_rounded(source.data), tl.bfloat16)
        return published_cast(self, source, to)

    def fp_to_fp(self: Any, source: Any, to: Any, rounding_mode: Any) -> Any:
        return (
            cast(self, source, to)
            if tl.bfloat16 in (source.dtype.scalar, to.scalar)
            else published_fp(self, source, to, rounding_mode)
        )

    published_fp, published_dot = InterpreterBuilder.create_fp_to_fp, InterpreterBuilder.create_dot

    def dot(self: Any, a: Any, b: Any, *rest: Any) -> Any:
        a, b = (TensorHandle(_widened(x), tl.float32) if is_bfloat16(x) else x for x in (a, b))
        return published_dot(self, a, b, *rest)

    InterpreterBuilder.create_fma, InterpreterBuilder.cast_impl = fma, cast
    InterpreterBuilder.create_fp_to_fp, InterpreterBuilder.create_dot = fp_to_fp, dot

    def reduced(published: Any) -> Any:
        def reduce(self: Any, given: Any, *rest: Any, **named: Any) -> Any:
            if not is_bfloat16(given.handle):
                return published(self, given, *rest, **named)
            wide = tl.tensor(TensorHandle(_widened(given.handle), tl.float32), _of(given.type, tl.float32))
            result = published(self, wide, *rest, **named)
            many = isinstance(result, (list, tuple))
            narrow = [
                tl.tensor(TensorHandle(_rounded(r.handle.data), tl.bfloat16), _of(r.type, tl.bfloat16))
                if r.dtype == tl.float32
                else r
                for r in (result if many else [result])
            ]
            return type(result)(narrow) if many else narrow[0]

        return reduce

    def _of(shaped: Any, element: Any) -> Any:
        return tl.block_type(element, shaped.shape) if shaped.is_block() else element

    for where, name in ((ReduceOps, "sum"), (ReduceOps, "min_max"), (ScanOps, "cumsum"), (ScanOps, "cumprod")):
        setattr(where, name, reduced(getattr(where, name)))
