"""The spec of LinearAverageOp."""

from __future__ import annotations

from gradspec.functions._linear_average import _cases
from gradspec.functions._linear_average._differences import DIFFERENCES
from gradspec.functions._linear_average._function import LinearAverageOp
from gradspec.spec import Effects, FunctionSpec, Saved, Supports

LINEAR_AVERAGE_OP = FunctionSpec(
    name="linear_average_op",
    function=LinearAverageOp.apply,
    primal=lambda x, y, memory, params: x @ memory.T / params[0],
    surrogate=lambda x, y, memory, params: x @ memory.T / params[0],
    wrt=("x",),
    cases=_cases.cases,
    raises=_cases.misuses,
    arguments=_cases.ARGUMENTS,
    documented=(LinearAverageOp,),
    supports=Supports.all(
        forward_mode=False,
        func_grad=False,
        vmap=False,
        compile_grad=False,
        compile_vmap=False,
        compile_jvp=False,
        compiled_autograd=False,  # torch takes no callback at the end of such a pass
        export=False,
    ),
    effects=Effects(writes=("memory",)),
    state_after=_cases.state_after,
    saved=Saved(
        text="nothing, and the old values of the rows that other calls move while it waits",
        bytes=lambda x, y, memory, params: 0,
    ),
    references=(_cases.WU_2018,),
    differences=DIFFERENCES,
)
