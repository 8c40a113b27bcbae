"""Attention in torch and in Triton, by several packages."""

from typing import Any

import torch
from torch import Tensor

from gradspec_lab.kernels._kernel import Kernel
from gradspec_lab.kernels.public._maps import attention, from_file, heads, imported, swapped

#: (heads, length, width) for tiles of 16.
TILES = ((2, 32, 16), (1, 1, 8), (1, 15, 16), (2, 16, 8), (1, 17, 16), (1, 31, 8))
MIXED = "its backward mixes float32 sums with half-precision factors, and torch refuses"
QKV = ("q", "k", "v")


def _kernel(name: str, package: str, **named: Any) -> Kernel:
    return Kernel(
        name=name,
        package=package,
        arguments=QKV,
        wrt=QKV,
        **({"shapes": TILES, "make": heads(), "reduction": lambda q, k, v: max(k.shape[-2], q.shape[-1])} | named),
    )


def _lucidrains(q: Tensor, k: Tensor, v: Tensor) -> Any:
    path = "memory_efficient_attention_pytorch/flash_attention.py"
    return from_file("memory-efficient-attention-pytorch", path, "FlashAttentionFunction.apply")(
        q, k, v, None, True, 16, 16
    )


def _chunked(q: Tensor, k: Tensor, v: Tensor) -> Any:
    name = "efficient_dot_product_attention"
    call = from_file("memory-efficient-attention", "memory_efficient_attention/attention_torch.py", name)
    return call(q, k, v, query_chunk_size=16, key_chunk_size=16)


def _ring(q: Tensor, k: Tensor, v: Tensor) -> Any:
    return imported("ring_attention_pytorch.ring_flash_attention", "ring_flash_attn")(q, k, v, None, True, 16)


def _softmax_1(q: Tensor, k: Tensor, v: Tensor) -> Any:
    call = from_file("flash-attention-softmax-n", "flash_attention_softmax_n/core/functional.py", "slow_attention_n")
    return call(q, k, v, softmax_n_param=1.0, train=False)


KERNELS = (
    _kernel(
        "memory-efficient-attention-pytorch flash",
        "memory-efficient-attention-pytorch",
        call=_lucidrains,
        reference=lambda q, k, v: attention(q, k, v, causal=True),
        dtypes=(torch.float32,),
        note=MIXED,
    ),
    _kernel(
        "memory-efficient-attention chunked",
        "memory-efficient-attention",
        reference=swapped(attention),
        make=heads(length_first=True),
        accumulate=None,
        stores=("S", "P", "dP", "dS"),
        call=_chunked,
        shapes=TILES[:4],
        note="returns 32 rows for 17 or 31 queries in chunks of 16, so lengths are below a chunk or whole chunks",
        reduction=lambda q, k, v: max(k.shape[1], q.shape[-1]),
    ),
    _kernel(
        "ring-attention-pytorch flash",
        "ring-attention-pytorch",
        make=heads(length_first=True),
        call=_ring,
        reference=swapped(attention, causal=True),
        dtypes=(torch.float32,),
        note=MIXED,
        reduction=lambda q, k, v: max(k.shape[1], q.shape[-1]),
    ),
    _kernel(
        "flash-attention-softmax-n torch",
        "flash-attention-softmax-n",
        call=_softmax_1,
        accumulate=None,
        reference=lambda q, k, v: attention(q, k, v, extra=1.0),
        stores=("S", "P", "dP", "dS"),
    ),
)
