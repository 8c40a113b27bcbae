"""Operations on Variables: put texts together, take them apart, ask a language model, and judge what it says."""

from gradspec.text._graph._add import Add, add
from gradspec.text.ops._achat import achat
from gradspec.text.ops._chat import ChatCompletion, chat
from gradspec.text.ops._chat_spec import CHAT
from gradspec.text.ops._evaluate import Evaluate, evaluate, exact_match
from gradspec.text.ops._join import Join, join, sum  # noqa: A004 -- it does what the built-in one does
from gradspec.text.ops._judge import judge
from gradspec.text.ops._judges_spec import EVALUATE, EXACT_MATCH, JUDGE
from gradspec.text.ops._parts_spec import ADD, FILL, JOIN, SPLIT, SUM
from gradspec.text.ops._prompts import PROMPTS, Prompts
from gradspec.text.ops._split import Split, split
from gradspec.text.ops._template import Fill, fill

#: The specs, in the order of the pages.
TEXTS = (ADD, JOIN, SUM, SPLIT, FILL, CHAT, EVALUATE, EXACT_MATCH, JUDGE)

__all__ = [
    "PROMPTS",
    "TEXTS",
    "Add",
    "ChatCompletion",
    "Evaluate",
    "Fill",
    "Join",
    "Prompts",
    "Split",
    "achat",
    "add",
    "chat",
    "evaluate",
    "exact_match",
    "fill",
    "join",
    "judge",
    "split",
    "sum",
]
