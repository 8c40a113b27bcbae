"""Textual gradient descent: a language model rewrites each parameter so that its feedback is answered."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from gradspec.text._graph._variable import Variable
from gradspec.text._scheduling._overlap import overlap
from gradspec.text.lm import Model, complete
from gradspec.text.lm._model import check_model
from gradspec.text.ops._bounded import feedback_of
from gradspec.text.ops._prompts import PROMPTS, Prompts, check_prompts
from gradspec.text.ops._tags import contents
from gradspec.text.ops._template import fill, lost_places
from gradspec.text.optim._state import check_state, is_count

#: What is said of a new text of a template that lacks some of its places.
_KEEP = (
    "Your text is a template, and leaves out {}. Write the whole text again in the same form, with each of them in it."
)


class TextualGradientDescent:
    """Rewrite parameters by a language model, given their feedback: one step of descent, in words.

    The model always sees a parameter and its feedback whole. A new text of a template that `fill` was given keeps its
    places; one that leaves one out is asked for again, and then the old text stays. With `concurrency(k)` the
    parameters' calls overlap; no parameter changes before all have their new text.

    Args:
        params: Variables that hold a text and require grad.
        model: Any callable that is a model.
        constraints: What a new text must keep to, in words.
        momentum: How many earlier texts of a parameter, with the feedback on them, the model sees too.
        prompts: What it is told.

    Raises:
        ValueError: there are no parameters, or momentum is negative.
        TypeError: a parameter is not a Variable that holds a text and requires grad.

    Example:
        >>> from gradspec.text import Variable
        >>> prompt = Variable("Answer.", role="system prompt", requires_grad=True)
        >>> (prompt + "").backward(Variable("Ask for short answers."))
        >>> optimizer = TextualGradientDescent([prompt], lambda messages: "<new>Answer briefly.</new>")
        >>> optimizer.step()
        >>> prompt.data
        'Answer briefly.'

    References:
        `Optimizing generative AI by backpropagating language model feedback
        <https://doi.org/10.1038/s41586-025-08661-4>`_, Yuksekgonul et al., 2025.
    """

    def __init__(
        self,
        params: Iterable[Variable],
        model: Model,
        *,
        constraints: Iterable[str] = (),
        momentum: int = 0,
        prompts: Prompts = PROMPTS,
    ) -> None:
        if isinstance(params, Variable):
            raise TypeError(f"params is a list of Variables; write [{params!r}]")
        if not isinstance(params, Iterable):
            raise TypeError(f"params is a list of Variables, not {params!r}")
        check_model(model)
        self.params = list(params)
        if not self.params:
            raise ValueError("an optimizer needs at least one parameter")
        for param in self.params:
            if not isinstance(param, Variable) or not param.requires_grad or not isinstance(param.data, str):
                raise TypeError(f"a parameter is a Variable that holds a text and requires grad, not {param!r}")
            if not param.is_leaf:
                raise TypeError(f"a parameter is a Variable that you make, and not what is computed: {param!r}")
        if len(set(self.params)) < len(self.params):
            raise ValueError("a parameter is given twice; each would be rewritten as often")
        if isinstance(constraints, str):
            raise TypeError(f"constraints is a list of texts; write [{constraints!r}]")
        if not is_count(momentum):
            raise ValueError(f"momentum counts earlier texts: 0 or more, not {momentum!r}")
        check_prompts(prompts)
        self.model, self.prompts = model, prompts
        constraints = tuple(constraints)
        if not all(isinstance(constraint, str) for constraint in constraints):
            raise TypeError(f"constraints is a list of texts, not {constraints!r}")
        self.constraints, self.momentum = constraints, momentum
        self._past: list[list[tuple[str, str]]] = [[] for _ in self.params]

    def zero_grad(self) -> None:
        """Forget the feedback of every parameter."""
        for param in self.params:
            param.grad = None

    def step(self) -> None:
        """Give each parameter that has feedback its new text: all of them, or after an error none.

        Raises:
            ValueError: the model twice wrote no text between its tags.
        """
        due = [i for i, param in enumerate(self.params) if param.grad is not None and param.grad.data]
        texts = overlap([partial(self._rewritten, i) for i in due])
        for i, text in zip(due, texts, strict=True):
            param = self.params[i]
            if self.momentum:
                self._past[i] = [*self._past[i], (str(param.data), self._feedback(param))][-self.momentum :]
            param.data = text

    def state_dict(self) -> dict[str, Any]:
        """Return the texts and what momentum remembers, as data that JSON can hold."""
        return {
            "version": 1,
            "prompts_version": self.prompts.version,
            "momentum": self.momentum,
            "constraints": list(self.constraints),
            "params": [param.data for param in self.params],
            "past": [[list(pair) for pair in past] for past in self._past],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` returned, the texts of the parameters included.

        Raises:
            TypeError: it is not a dict.
            ValueError: it is of another version, for another number of parameters, or makes no sense; nothing has
                changed then.
        """
        check_state(state, len(self.params))
        self.momentum, self.constraints = state["momentum"], tuple(state["constraints"])
        self._past = [[(text, feedback) for text, feedback in past] for past in state["past"]]
        for param, text in zip(self.params, state["params"], strict=True):
            param.data = text

    def _rewritten(self, i: int) -> str:
        param, prompts = self.params[i], self.prompts
        past = "\n\n".join(
            f"<text>\n{text}\n</text>\n<comments>\n{feedback}\n</comments>" for text, feedback in self._past[i]
        )
        rules = "\n".join(f"- {constraint}" for constraint in self.constraints)
        prompt = fill(
            prompts.update,
            role=param.role or "text",
            value=param.data,
            feedback=self._feedback(param),
            past=fill(prompts.past, past=past) if past else "",
            constraints=fill(prompts.constraints, constraints=rules) if rules else "",
        )
        said: list[dict[str, str]] = [{"role": "user", "content": str(prompt.data)}]
        answer = complete(self.model, said).text
        text = _new(answer)
        lost = [] if text is None else lost_places(param, text)
        if text is None or lost:
            repair = _KEEP.format(", ".join(lost)) if lost else str(fill(prompts.repair, answer=answer).data)
            said += [{"role": "assistant", "content": answer}, {"role": "user", "content": repair}]
            answer = complete(self.model, said).text
            text = _new(answer)
        if text is None:
            raise ValueError(f"the model twice wrote no text between <new> and </new>; its last answer: {answer!r}")
        return str(param.data) if lost_places(param, text) else text

    def _feedback(self, param: Variable) -> str:
        if param.grad is None:
            return ""
        return str(feedback_of(param.grad, self.prompts.limit))


def _new(answer: str) -> str | None:
    """Return the last text between the tags, outside of the model's reasoning; None where there is none, or nothing."""
    found = contents(answer, "new")
    if not found or not found[-1].strip():
        return None
    return found[-1].removeprefix("\n").removesuffix("\n")
