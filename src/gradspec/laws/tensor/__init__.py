"""Laws of functions on tensors.

A line for each, in the order in which they run: a law comes after the laws that it requires.
"""

from gradspec.laws.tensor._primal import PRIMAL
from gradspec.laws.tensor._vjp import VJP
from gradspec.laws.tensor._inputs_untouched import INPUTS_UNTOUCHED
from gradspec.laws.tensor._cotangents_untouched import COTANGENTS_UNTOUCHED
from gradspec.laws.tensor._declared_writes import DECLARED_WRITES
from gradspec.laws.tensor._interleaved import INTERLEAVED
from gradspec.laws.tensor._earlier_calls import EARLIER_CALLS
from gradspec.laws.tensor._formula import FORMULA
from gradspec.laws.tensor._raw_returns import RAW_RETURNS
from gradspec.laws.tensor._precision import PRECISION
from gradspec.laws.tensor._uninitialized_memory import UNINITIALIZED_MEMORY
from gradspec.laws.tensor._examples import EXAMPLES
from gradspec.laws.tensor._surrogate import SURROGATE
from gradspec.laws.tensor._jvp import JVP
from gradspec.laws.tensor._adjoint import ADJOINT
from gradspec.laws.tensor._cotangent_linearity import COTANGENT_LINEARITY
from gradspec.laws.tensor._second_order import SECOND_ORDER
from gradspec.laws.tensor._first_order_only import FIRST_ORDER_ONLY
from gradspec.laws.tensor._forward_over_reverse import FORWARD_OVER_REVERSE
from gradspec.laws.tensor._func_grad import FUNC_GRAD
from gradspec.laws.tensor._vmap import VMAP
from gradspec.laws.tensor._compile import COMPILE
from gradspec.laws.tensor._compile_grad import COMPILE_GRAD
from gradspec.laws.tensor._compile_vmap import COMPILE_VMAP
from gradspec.laws.tensor._compile_jvp import COMPILE_JVP
from gradspec.laws.tensor._compiled_autograd import COMPILED_AUTOGRAD
from gradspec.laws.tensor._dynamic_shapes import DYNAMIC_SHAPES
from gradspec.laws.tensor._export import EXPORT
from gradspec.laws.tensor._fake import FAKE
from gradspec.laws.tensor._inference import INFERENCE
from gradspec.laws.tensor._checkpoint import CHECKPOINT
from gradspec.laws.tensor._selective_checkpoint import SELECTIVE_CHECKPOINT
from gradspec.laws.tensor._sharded import SHARDED
from gradspec.laws.tensor._batched_cotangent import BATCHED_COTANGENT
from gradspec.laws.tensor._autocast import AUTOCAST
from gradspec.laws.tensor._cotangent_layout import COTANGENT_LAYOUT
from gradspec.laws.tensor._undefined_cotangent import UNDEFINED_COTANGENT
from gradspec.laws.tensor._needs_input_grad import NEEDS_INPUT_GRAD
from gradspec.laws.tensor._retained_graph import RETAINED_GRAPH
from gradspec.laws.tensor._keyword_call import KEYWORD_CALL
from gradspec.laws.tensor._wrong_call import WRONG_CALL
from gradspec.laws.tensor._state_transition import STATE_TRANSITION
from gradspec.laws.tensor._aliasing import ALIASING
from gradspec.laws.tensor._global_state import GLOBAL_STATE
from gradspec.laws.tensor._ctx_clean import CTX_CLEAN
from gradspec.laws.tensor._freed import FREED
from gradspec.laws.tensor._saved_bytes import SAVED_BYTES
from gradspec.laws.tensor._declared_draws import DECLARED_DRAWS
from gradspec.laws.tensor._replayed import REPLAYED
from gradspec.laws.tensor._evaluation import EVALUATION
from gradspec.laws.tensor._distribution import DISTRIBUTION
from gradspec.laws.tensor._layout import LAYOUT
from gradspec.laws.tensor._empty import EMPTY
from gradspec.laws.tensor._scalar import SCALAR
from gradspec.laws.tensor._no_host_read import NO_HOST_READ
from gradspec.laws.tensor._parity import PARITY
from gradspec.laws.tensor._cuda_graph import CUDA_GRAPH

from gradspec.law import Law

#: What is imported above, in that order.
LAWS = tuple(value for value in globals().values() if isinstance(value, Law))

__all__ = ["LAWS"]
