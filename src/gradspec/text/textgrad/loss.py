"""Losses: a language model judges, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradspec.text.textgrad._absent import absent
from gradspec.text.textgrad.autograd import LLMCall, Module
from gradspec.text.textgrad.engine.base import Engine
from gradspec.text.textgrad.variable import Variable

CRITIC = (
    "You judge answers to multiple-choice questions. Look for mistakes in the reasoning, and do not solve the question."
)


class TextLoss(Module):
    """A judgement in words, by a language model that is told what to look at.

    Args:
        eval_system_prompt: What to look at; a Variable that requires grad can be learned itself.
        engine: Who judges; a name, or None for the engine of `set_backward_engine`.

    Example:
        >>> loss = TextLoss("Is this short?", engine=lambda messages: "No.")
        >>> loss(Variable("Well, in fact ...", role_description="answer")).value
        'No.'
    """

    def __init__(self, eval_system_prompt: Variable | str, engine: Engine | str | None = None) -> None:
        if isinstance(eval_system_prompt, str):
            role = "instruction for the judgement"
            eval_system_prompt = Variable(eval_system_prompt, requires_grad=False, role_description=role)
        self.eval_system_prompt = eval_system_prompt
        self.llm_call = LLMCall(engine, eval_system_prompt)
        self.engine = self.llm_call.engine

    def forward(self, instance: Variable) -> Variable:
        """Return the judgement of a Variable."""
        return self.llm_call(instance, response_role_description=f"judgement of the {instance.role_description}")


class MultiChoiceTestTime(Module):
    """A judgement of an answer to a multiple-choice question, while the answer is still worked on.

    Args:
        evaluation_instruction: What to look at; it comes before the question.
        engine: Who judges.
        system_prompt: The text before all of this; None for a short one of ours.

    Example:
        >>> loss = MultiChoiceTestTime("Is it (a) or (b)?", engine=lambda messages: "It is (b).")
        >>> loss("1 + 1 = (a) 1 (b) 2", Variable("(a)", role_description="answer")).value
        'It is (b).'
    """

    def __init__(
        self, evaluation_instruction: str, engine: Engine | str | None = None, system_prompt: Variable | None = None
    ) -> None:
        if system_prompt is None:
            role = "system prompt of the judgement"
            system_prompt = Variable(CRITIC, requires_grad=False, role_description=role)
        self.tt_system_prompt, self.evaluation_instruction = system_prompt, evaluation_instruction
        self.llm_call = LLMCall(engine, system_prompt)
        self.engine = self.llm_call.engine

    def forward(self, question: str, prediction: Variable) -> Variable:
        """Return the judgement of an answer."""
        asked = Variable(question, requires_grad=False, role_description="multiple-choice question")
        pieces: list[Variable | str] = [
            f"{self.evaluation_instruction}\n\nQuestion:\n",
            asked,
            "\n\nAnswer:\n",
            prediction,
        ]
        return self.llm_call._answer(pieces, f"judgement of the {prediction.role_description}")


class MultiFieldEvaluation(Module):
    """A judgement of several Variables at once.

    Args:
        evaluation_instruction: What to look at.
        role_descriptions: What each of the Variables is, in the order in which they are given.
        engine: Who judges.
        system_prompt: The text before all of this.

    Example:
        >>> instruction = Variable("Is it right?", requires_grad=False, role_description="instruction")
        >>> loss = MultiFieldEvaluation(instruction, ["question", "answer"], engine=lambda messages: "Yes.")
        >>> loss([Variable(text, role_description=text) for text in ("1 + 1?", "2")]).value
        'Yes.'
    """

    def __init__(
        self,
        evaluation_instruction: Variable,
        role_descriptions: Sequence[str],
        engine: Engine | str | None = None,
        system_prompt: Variable | None = None,
    ) -> None:
        self.evaluation_instruction, self.role_descriptions = evaluation_instruction, list(role_descriptions)
        self.llm_call = LLMCall(engine, system_prompt)
        self.engine = self.llm_call.engine

    def forward(self, inputs: Sequence[Variable]) -> Variable:
        """Return the judgement of Variables, one for each role.

        Raises:
            ValueError: there are more or fewer of them than roles.
        """
        if len(inputs) != len(self.role_descriptions):
            raise ValueError(f"there are {len(self.role_descriptions)} roles and {len(inputs)} Variables")
        pieces: list[Variable | str] = [self.evaluation_instruction]
        for role, variable in zip(self.role_descriptions, inputs, strict=True):
            pieces += [f"\n\n{role}:\n", variable]
        return self.llm_call._answer(pieces, f"judgement of {' and '.join(self.role_descriptions)}")


class MultiFieldTokenParsedEvaluation(MultiFieldEvaluation):
    """A judgement with a score between two tags.

    Args:
        evaluation_instruction: What to look at, and between which tags to write the score.
        role_descriptions: What each of the Variables is.
        engine: Who judges.
        system_prompt: The text before all of this.
        parse_tags: The opening and the closing tag.

    Example:
        >>> instruction = Variable("Write <S>score</S>.", requires_grad=False, role_description="instruction")
        >>> loss = MultiFieldTokenParsedEvaluation(
        ...     instruction, ["answer"], engine=lambda messages: "Well: <S> 3 </S>", parse_tags=["<S>", "</S>"]
        ... )
        >>> loss.parse_output(loss([Variable("4", role_description="answer")]))
        '3'
    """

    def __init__(
        self,
        evaluation_instruction: Variable,
        role_descriptions: Sequence[str],
        engine: Engine | str | None = None,
        system_prompt: Variable | None = None,
        parse_tags: Sequence[str] | None = None,
    ) -> None:
        super().__init__(evaluation_instruction, role_descriptions, engine, system_prompt)
        if parse_tags is None or len(parse_tags) != 2:
            raise ValueError(f"parse_tags are the opening and the closing tag, not {parse_tags!r}")
        self.parse_tags = tuple(parse_tags)

    def parse_output(self, response: Variable) -> str:
        """Return the text between the last two tags of a judgement.

        Raises:
            ValueError: there are none.
        """
        opening, closing = self.parse_tags
        _, found, after = str(response).rpartition(opening)
        inside, closed, _ = after.partition(closing)
        if not found or not closed:
            raise ValueError(f"nothing stands between {opening} and {closing} in {str(response)!r}")
        return inside.strip()


def __getattr__(name: str) -> Any:
    raise absent(__name__, name)
