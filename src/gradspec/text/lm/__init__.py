"""Language models for text autodiff: any callable is one; clients with cache, budget and retries; an offline one."""

from gradspec.text.lm._budget import Budget
from gradspec.text.lm._cache import Cache
from gradspec.text.lm._cassette import Cassette
from gradspec.text.lm._client import Client
from gradspec.text.lm._errors import (
    BudgetError,
    CacheError,
    CacheMissError,
    DriftError,
    ModelConnectionError,
    ModelError,
    ModelTimeoutError,
    ReplyError,
    SchemaError,
    StatusError,
)
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
from gradspec.text.lm._openai import OpenAIModel
from gradspec.text.lm._rate import RateLimit
from gradspec.text.lm._retry import Retry
from gradspec.text.lm._rules import RuleModel

__all__ = [
    "ROLES",
    "Budget",
    "BudgetError",
    "Cache",
    "CacheError",
    "CacheMissError",
    "Cassette",
    "Client",
    "Completion",
    "DriftError",
    "Message",
    "Messages",
    "Model",
    "ModelConnectionError",
    "ModelError",
    "ModelTimeoutError",
    "OpenAIModel",
    "RateLimit",
    "ReplyError",
    "Retry",
    "RuleModel",
    "SchemaError",
    "StatusError",
    "Usage",
    "acomplete",
    "as_completion",
    "as_messages",
    "complete",
    "is_async",
]
