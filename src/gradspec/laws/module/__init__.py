"""Laws of modules.

A line for each, in the order in which they run: a law comes after the laws that it requires.
"""

from gradspec.laws.module._state_dict import STATE_DICT
from gradspec.laws.module._copies import COPIES
from gradspec.laws.module._gradient_flow import GRADIENT_FLOW
from gradspec.laws.module._evaluation_mode import EVALUATION_MODE
from gradspec.laws.module._backward_state import BACKWARD_STATE
from gradspec.laws.module._batch_size import BATCH_SIZE
from gradspec.laws.module._batch_independence import BATCH_INDEPENDENCE
from gradspec.laws.module._functional_call import FUNCTIONAL_CALL
from gradspec.laws.module._module_compile import MODULE_COMPILE
from gradspec.laws.module._module_export import MODULE_EXPORT
from gradspec.laws.module._module_precision import MODULE_PRECISION
from gradspec.laws.module._channels_last import CHANNELS_LAST
from gradspec.laws.module._ddp import DDP
from gradspec.laws.module._fsdp2 import FSDP2

from gradspec.law import Law

#: What is imported above, in that order.
LAWS = tuple(value for value in globals().values() if isinstance(value, Law))

__all__ = ["LAWS"]
