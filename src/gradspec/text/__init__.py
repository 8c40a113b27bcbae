"""Reverse-mode differentiation of text: Variables, Functions, and the engine that carries feedback back."""

from gradspec._renamed import old_names
from gradspec.text import _for_specs as _for_specs
from gradspec.text._costs import Cost
from gradspec.text._data import Data
from gradspec.text._engine._deferred import Deferred, defer
from gradspec.text._engine._hooks import HookHandle
from gradspec.text._engine._node import GradientEdge, Node
from gradspec.text._events import (
    BackwardStep,
    CacheHit,
    Called,
    Committed,
    Event,
    Retried,
    watch,
)
from gradspec.text._grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from gradspec.text._graph._backward import backward, backward_async
from gradspec.text._graph._context import FunctionNode
from gradspec.text._graph._function import Function
from gradspec.text._graph._gather import gather
from gradspec.text._graph._grad import get_gradient_edge, grad
from gradspec.text._graph._merge import Part
from gradspec.text._graph._picture import mermaid, tree
from gradspec.text._graph._progress import progress
from gradspec.text._graph._variable import Variable
from gradspec.text._scheduling._overlap import concurrency, max_concurrency
from gradspec.text._sinks import JsonLines, to_logger
from gradspec.text.ops import TEXTS

__all__ = [
    "TEXTS",
    "BackwardStep",
    "CacheHit",
    "Called",
    "Committed",
    "Cost",
    "Data",
    "Deferred",
    "Event",
    "Function",
    "FunctionNode",
    "GradientEdge",
    "HookHandle",
    "JsonLines",
    "Node",
    "Part",
    "Retried",
    "Variable",
    "backward",
    "backward_async",
    "concurrency",
    "defer",
    "enable_grad",
    "gather",
    "get_gradient_edge",
    "grad",
    "is_grad_enabled",
    "max_concurrency",
    "mermaid",
    "no_grad",
    "progress",
    "set_grad_enabled",
    "to_logger",
    "tree",
    "watch",
]

__getattr__ = old_names(__name__, Later="Deferred", later="defer")
