"""Language models for text autodiff: any callable is one."""

from gradspec.text.lm._model import (
    ROLES,
    Completion,
    Message,
    Messages,
    Model,
    Usage,
    acomplete,
    as_completion,
    as_messages,
    complete,
    is_async,
)

__all__ = [
    "ROLES",
    "Completion",
    "Message",
    "Messages",
    "Model",
    "Usage",
    "acomplete",
    "as_completion",
    "as_messages",
    "complete",
    "is_async",
]
