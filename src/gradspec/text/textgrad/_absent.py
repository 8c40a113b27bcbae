"""Names and arguments of TextGrad's that are not here, and what does their work instead."""

from __future__ import annotations

IMAGES = "a Variable of gradspec holds text or numbers, no image"
OWN = "write a gradspec.text.Function: forward and backward are static, and backward returns the feedback"
EVENTS = "use gradspec.text.watch with gradspec.text.to_logger or gradspec.text.JsonLines"
COMPATIBLE = "ask the server by OpenAI's protocol: ChatOpenAI(name, base_url=...)"

#: The name, and what to do without it.
ABSENT = {
    "Aggregate": "use sum",
    "AzureChatOpenAI": COMPATIBLE,
    "BackwardContext": OWN,
    "CachedEngine": "give any engine a cache: ChatOpenAI(name, cache=gradspec.text.lm.Cache(path))",
    "ChatAnthropic": COMPATIBLE,
    "ChatBedrockEngine": COMPATIBLE,
    "ChatCohere": COMPATIBLE,
    "ChatGemini": COMPATIBLE,
    "ChatGroq": COMPATIBLE,
    "ChatTogether": COMPATIBLE,
    "ChatVLLM": COMPATIBLE,
    "CustomJsonFormatter": EVENTS,
    "Function": OWN,
    "GuidanceEngine": "use gradspec.text.ops.chat with schema=",
    "GuidedTextualGradientDescent": "use TextualGradientDescent, which asks once more if an answer has no tags",
    "ImageQALoss": IMAGES,
    "LLMCall_with_in_context_examples": "put the examples into the system prompt",
    "MultimodalLLMCall": IMAGES,
    "OpenAICompatibleEngine": COMPATIBLE,
    "OpenAIEngine": "use ChatOpenAI(name)",
    "OrderedFieldsMultimodalLLMCall": IMAGES,
    "Sum": "use sum",
    "aggregate": "use sum",
    "logger": EVENTS,
    "tasks": "bring your own examples; gradspec.text.optim.optimize splits them",
}


def absent(module: str, name: str) -> AttributeError:
    """Return the error of a name that a module does not have.

    Example:
        >>> absent("gradspec.text.textgrad", "aggregate")
        AttributeError('gradspec.text.textgrad has no aggregate; use sum')
    """
    instead = ABSENT.get(name)
    hint = f"; {instead}" if instead else ""
    return AttributeError(f"{module} has no {name}{hint}", name=name)


def refuse(value: object, image_path: str, predecessors: object) -> None:
    """Refuse what a Variable of TextGrad's may be made of, and ours may not.

    Raises:
        TypeError: it is an image, or says what it was made of.
    """
    if image_path or isinstance(value, bytes):
        raise TypeError("an image is not supported; a Variable holds a text or a number")
    if predecessors:
        raise TypeError(
            "predecessors cannot be given: only calls put Variables into a graph. Write your operation as a "
            "gradspec.text.Function, and show its result by Variable.of"
        )
