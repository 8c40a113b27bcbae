"""Programs under TextGrad's names, without TextGrad."""

from __future__ import annotations

import sys
import threading
from types import ModuleType, SimpleNamespace

import pytest

import gradspec.text.textgrad as tg
from gradspec.text import Variable as Plain
from gradspec.text import concurrency
from gradspec.text.lm import Budget, BudgetError, Cache, Client
from gradspec.text.textgrad import autograd, engine, loss, optimizer
from gradspec.text.textgrad.config import SingletonBackwardEngine, validate_engine_or_get_default
from gradspec.text.textgrad.engine.local_model_openai_api import ChatExternalClient
from gradspec.text.textgrad.engine_experimental.litellm import LiteLLMEngine
from text.lm.server import Server
from text.textgrad import programs


class Recorder(tg.EngineLM):
    """An engine that keeps what it was asked."""

    def __init__(self, answer="ok"):
        self.answer, self.asked = answer, []

    def generate(self, prompt, system_prompt=None):
        self.asked.append((prompt, system_prompt))
        return self.answer


@pytest.fixture(autouse=True)
def _no_engine(monkeypatch):
    monkeypatch.setattr(SingletonBackwardEngine(), "_engine", None)


def variable(text, role="text", **options):
    return tg.Variable(text, role_description=role, **options)


@pytest.mark.parametrize("name", programs.NAMES)
def test_each_program_learns(name):
    found = getattr(programs.Programs("gradspec.text.textgrad"), name)()
    assert set(found["values"]) == {"better"}
    assert set(found["left"]) == {0}


def test_a_variable_is_a_view_of_one_of_ours():
    plain = Plain("a", role="letter", requires_grad=True)
    view = tg.Variable.of(plain)
    view.set_value("b")
    view.set_role_description("text")
    assert (plain.data, plain.role, view) == ("b", "text", tg.Variable.of(plain))
    assert view != variable("b")
    assert len({view, tg.Variable.of(plain)}) == 1
    assert repr(view) == "Variable(value='b', role='text', grads=[])"
    assert (view + " and " + view).value == "b and b"


def test_gradients_are_a_set_that_keeps_its_order():
    x, first, second = variable("x"), variable("first"), variable("second")
    for gradient in (first, second, first):
        x.gradients.add(gradient)
    assert [*x.gradients] == [first, second]
    assert x.get_gradient_text() == x.plain.grad.data == "first\nsecond"
    x.gradients.discard(first)
    assert x.get_gradient_text() == "second"
    x.gradients.clear()
    assert (len(x.gradients), x.plain.grad) == (0, None)


def test_every_variable_of_a_pass_keeps_what_was_said_of_it_and_the_loss_nothing():
    prompt = variable("Answer.", "system prompt")
    answer = tg.BlackboxLLM(Recorder("4"), prompt)(variable("2 + 2?", requires_grad=False))
    judged = tg.TextLoss("Is it short?", Recorder("No."))(answer)
    judged.backward(Recorder("say less"))
    assert [view.get_gradient_text() for view in (prompt, answer, judged)] == ["say less", "say less", ""]
    assert judged.predecessors[1] is answer
    assert str(variable("2 + 2?").value) == "2 + 2?"


def test_two_losses_may_share_a_call_and_each_adds_what_it_says():
    prompt = variable("Answer.")
    answer = tg.BlackboxLLM(Recorder("4"), prompt)(variable("2 + 2?", requires_grad=False))
    for said in ("be brief", "be kind"):
        tg.TextLoss("Judge.", Recorder("No."))(answer).backward(Recorder(said))
    assert prompt.get_gradient_text().splitlines() == ["be brief", "be kind"]


def test_calls_overlap_in_both_directions_and_the_engine_of_the_pass_is_asked_in_its_threads():
    together = threading.Barrier(16, timeout=600)  # no branch is answered before all sixteen have asked

    class Slow(Recorder):
        def generate(self, prompt, system_prompt=None):
            together.wait()
            return super().generate(prompt, system_prompt)

    slow, back = Slow(), Slow("say less")
    prompt = variable("Answer.", "system prompt")
    with concurrency(32):
        model = tg.BlackboxLLM(slow, prompt)
        answers = [model(variable(f"{n}?", f"question {n}")) for n in range(16)]
        tg.sum(answers).backward(back)
    assert (len(slow.asked), len(back.asked)) == (16, 32)
    assert prompt.get_gradient_text() == "\n".join(["say less"] * 16)


def test_a_judgement_can_itself_be_learned():
    instruction = variable("Is it short?", "instruction")
    answer = variable("Well ...", "answer", requires_grad=False)
    tg.TextLoss(instruction, Recorder("No."))(answer).backward(Recorder("ask for numbers"))
    assert instruction.get_gradient_text() == "ask for numbers"


def test_braces_of_a_template_are_those_of_format_and_braces_of_the_data_are_data():
    model = Recorder()
    call = autograd.FormattedLLMCall(model, '{{"q": "{q}"}}', {"q": None}, variable("Be brief."))
    answer = call({"q": variable("{q} {}")}, response_role_description="reply")
    assert model.asked == [('{"q": "{q} {}"}', "Be brief.")]
    assert answer.role_description == "reply"


@pytest.mark.parametrize(
    ("template", "fields", "said"),
    [
        ("{a}", {"b": None}, r"has the fields \['a'\], and fields are \['b'\]"),
        ("{a!r}", {"a": None}, "has more in its braces"),
        ("{a:>9}", {"a": None}, "has more in its braces"),
    ],
)
def test_a_template_that_does_not_fit_is_refused(template, fields, said):
    with pytest.raises(ValueError, match=said):
        autograd.FormattedLLMCall(Recorder(), template, fields)


def test_inputs_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"the fields are \['a'\], and the inputs are \['b'\]"):
        autograd.FormattedLLMCall(Recorder(), "{a}", {"a": None})({"b": variable("x")})
    with pytest.raises(TypeError, match="takes a Variable, not 'text'"):
        autograd.LLMCall(Recorder())("text")
    with pytest.raises(TypeError, match="sum takes a list of Variables"):
        tg.sum(["text"])
    with pytest.raises(ValueError, match="1 roles and 2 Variables"):
        loss.MultiFieldEvaluation(variable("?"), ["a"], Recorder())([variable("x"), variable("y")])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"image_path": "a.png"}, "an image is not supported"),
        ({"value": b"png"}, "an image is not supported"),
        ({"predecessors": [1]}, "predecessors cannot be given"),
    ],
)
def test_what_a_variable_cannot_hold_is_refused(options, said):
    with pytest.raises(TypeError, match=said):
        tg.Variable(role_description="r", **options)


def test_without_an_engine_nothing_is_guessed():
    with pytest.raises(ValueError, match="there is no engine"):
        tg.BlackboxLLM()
    with pytest.raises(ValueError, match="there is no engine"):
        tg.TextLoss("?", Recorder())(variable("x")).backward()
    mine = Recorder("say less")
    tg.set_backward_engine(mine)
    x = variable("x")
    tg.TextLoss("?")(x).backward()
    assert (x.get_gradient_text(), len(mine.asked)) == ("say less", 2)
    with pytest.raises(RuntimeError, match="override=True"):
        tg.set_backward_engine(Recorder())
    other = Recorder()
    tg.set_backward_engine(other, override=True)
    assert validate_engine_or_get_default(None) is other


def test_a_model_of_ours_is_an_engine_and_its_budget_holds():
    budget = Budget(calls=2)
    client = Client(lambda messages: "say less", budget=budget)
    x = variable("x")
    tg.TextLoss("?", client)(x).backward(client)
    with pytest.raises(BudgetError):
        tg.TGD([x], engine=client).step()
    assert (budget.calls, x.value, x.get_gradient_text()) == (2, "x", "say less")


def test_an_optimizer_uses_tags_constraints_examples_and_a_system_prompt(capsys):
    x = variable("x = 5", "solution")
    x.gradients.add(variable("wrong sign"))
    mine = Recorder("<mine>x = -5</mine>")
    tg.TGD(
        [x],
        verbose=1,
        engine=mine,
        constraints=["One line."],
        new_variable_tags=["<mine>", "</mine>"],
        optimizer_system_prompt="You edit.",
        in_context_examples=["y = 1"],
    ).step()
    [(prompt, system)] = mine.asked
    assert (x.value, system) == ("x = -5", "You edit.")
    for part in ("x = 5", "wrong sign", "- One line.", "example: y = 1", "between <mine> and </mine>"):
        assert part in prompt
    assert "<new>" not in prompt
    assert capsys.readouterr().out == "solution: x = -5\n"


def test_a_step_without_tags_is_asked_once_more_in_one_prompt_and_then_refused():
    x = variable("x")
    x.gradients.add(variable("wrong"))
    mine = Recorder("no tags")
    with pytest.raises(ValueError, match="twice wrote no text"):
        optimizer.TextualGradientDescentwithMomentum(mine, [x], momentum_window=1).step()
    with pytest.raises(ValueError, match="no text between <A> and </A>"):
        tg.TGD([x], engine=Recorder("no tags"), new_variable_tags=["<A>", "</A>"]).step()
    assert len(mine.asked) == 2
    assert "assistant: no tags\n\nuser: " in mine.asked[1][0]
    with pytest.raises(ValueError, match="opening and the closing tag"):
        tg.TGD([x], engine=mine, new_variable_tags=["<one>"])
    with pytest.raises(TypeError, match="a parameter is a Variable"):
        tg.TGD([Plain("x", requires_grad=True)], engine=mine)


def test_the_tags_of_a_parsed_judgement():
    judged = loss.MultiFieldTokenParsedEvaluation(
        variable("?"), ["a"], Recorder("<S>1</S> or <S>2</S>"), None, ["<S>", "</S>"]
    )
    assert judged.parse_output(judged([variable("x")])) == "2"
    with pytest.raises(ValueError, match="nothing stands between <S> and </S>"):
        judged.parse_output(variable("<S>1"))


@pytest.mark.parametrize("tags", [None, ["<S>"], ["<S>", "</S>", "<T>"]])
def test_a_parsed_judgement_without_two_tags_is_refused(tags):
    with pytest.raises(ValueError, match="parse_tags are the opening and the closing tag, not"):
        loss.MultiFieldTokenParsedEvaluation(variable("?"), ["a"], Recorder("1"), None, tags)


def test_an_engine_that_is_none_is_refused():
    with pytest.raises(TypeError, match=r"an engine is an EngineLM, a name, or any model of gradspec\.text\.lm, not 3"):
        tg.BlackboxLLM(3)(variable("x"))


def test_a_judgement_of_a_multiple_choice_question_teaches_the_answer_alone():
    mine, answer = Recorder("It is (b)."), variable("(a)", "answer")
    judged = loss.MultiChoiceTestTime("Is it right?", mine)("1 + 1 = (a) 1 (b) 2", answer)
    prompt, system = mine.asked[0]
    assert prompt == "Is it right?\n\nQuestion:\n1 + 1 = (a) 1 (b) 2\n\nAnswer:\n(a)"
    assert "multiple-choice" in system
    judged.backward(Recorder("say (b)"))
    assert answer.get_gradient_text() == "say (b)"
    assert [view.get_gradient_text() for view in judged.predecessors if view is not answer] == ["", ""]
    loss.MultiChoiceTestTime("Is it right?", mine, variable("Be strict."))("?", answer)
    assert mine.asked[-1][1] == "Be strict."


def test_names_that_are_not_here_say_what_to_do():
    with pytest.raises(AttributeError, match="has no CachedEngine; give any engine a cache"):
        _ = engine.CachedEngine
    with pytest.raises(AttributeError, match="has no ImageQALoss; a Variable of gradspec holds text"):
        _ = loss.ImageQALoss
    with pytest.raises(AttributeError, match="has no aggregate; use sum"):
        _ = tg.aggregate
    with pytest.raises(AttributeError, match="has no MultimodalLLMCall; a Variable of gradspec holds text"):
        _ = autograd.MultimodalLLMCall
    with pytest.raises(AttributeError, match=r"has no nonsense$"):
        _ = tg.nonsense


def test_the_picture_shows_all_of_it():
    x = variable("word " * 40, "prompt")
    loss_ = tg.TextLoss("?", Recorder())(x)
    assert "ChatCompletionBackward" in loss_.generate_graph()
    assert len(loss_.generate_graph(print_gradients=True)) > len(loss_.generate_graph())
    assert x.get_short_value(2) == "word word (...) word "


SERVED = {
    "gpt-4o": ("gpt-4o", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "o3-mini": ("o3-mini", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "claude-3-opus": ("claude-3-opus", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    "groq-llama3": ("llama3", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "ollama-llama3.2": ("llama3.2", "http://localhost:11434/v1", None),
}


@pytest.mark.parametrize("name", SERVED)
def test_names_of_engines(name, monkeypatch):
    model, url, key = SERVED[name]
    for variable_ in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "GROQ_API_KEY"):
        monkeypatch.delenv(variable_, raising=False)
    if key is not None:
        with pytest.raises(ValueError, match=key):
            tg.get_engine(name)
        monkeypatch.setenv(key, "fake_key")
    found = tg.get_engine(name)
    assert isinstance(found, engine.ChatOpenAI)
    assert (found.model.identity["model"], found.model.identity["base_url"]) == (model, url)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("invalid-engine", {}, "no engine is called 'invalid-engine'"),
        ("gpt-4o", {"cache": True}, "takes a cache for names that begin with 'experimental:'"),
        ("experimental:x", {"cache": [1, 2, 3]}, "cache is True, False, a Cache, a dict"),
        ("ollama-x", {"is_multimodal": True}, "images are not supported"),
    ],
)
def test_engines_that_cannot_be(name, options, said):
    with pytest.raises(ValueError, match=said):
        tg.get_engine(name, **options)


def test_an_engine_at_a_server_sends_what_textgrads_sends_and_no_foreign_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    with Server(reply=lambda body: "PARIS") as server:
        mine = engine.ChatOpenAI("echo", system_prompt="Be brief.", base_url=server.url, cache=Cache(":memory:"))
        assert [mine("Capital of France?"), mine.generate("Capital of France?")] == ["PARIS", "PARIS"]
        tg.BlackboxLLM(mine, "Answer.")(variable("Why?"))
        external = SimpleNamespace(base_url=server.url, api_key="local")
        assert ChatExternalClient(external, "echo")("Hello?") == "PARIS"
    sent = server.requests
    assert [[message["content"] for message in body["messages"]] for body in sent] == [
        ["Be brief.", "Capital of France?"],
        ["Answer.", "Why?"],
        ["Hello?"],
    ]
    assert {name: sent[0][name] for name in ("temperature", "max_tokens", "top_p")} == engine.openai.OPTIONS
    assert [headers.get("authorization") for headers in server.headers] == [None, None, "Bearer local"]


@pytest.fixture
def litellm(monkeypatch):
    said = []

    def completion(**request):
        said.append(request)
        message = SimpleNamespace(message=SimpleNamespace(content="PARIS"), finish_reason="stop")
        return SimpleNamespace(choices=[message], usage=SimpleNamespace(prompt_tokens=3, completion_tokens=1))

    module = ModuleType("litellm")
    module.completion = completion
    monkeypatch.setitem(sys.modules, "litellm", module)
    return said


@pytest.mark.parametrize("cache", ["true", "ours", "dict", "none"])
def test_an_engine_of_litellms_and_its_caches(cache, litellm, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kinds = {"true": True, "ours": Cache(":memory:"), "dict": {}, "none": False}
    mine = tg.get_engine("experimental:claude-3", cache=kinds[cache], options={"temperature": 0})
    said = [mine("bc", system_prompt="a") for _ in range(2)]
    said += [mine("c", system_prompt="ab"), mine("c", system_prompt="ab", temperature=1)]  # in TextGrad the same reply
    assert said == ["PARIS"] * 4
    assert len(litellm) == (4 if cache == "none" else 3)
    assert (litellm[0]["model"], litellm[0]["temperature"]) == ("claude-3", 0)
    assert (tmp_path / "gradspec" / "textgrad.sqlite3").is_file() == (cache == "true")


def test_an_engine_of_litellms_counts_tokens_and_says_what_to_install(litellm, monkeypatch):
    budget = Budget()
    LiteLLMEngine("claude-3", budget=budget)("a")
    assert (budget.calls, budget.tokens) == (1, 4)
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(ImportError, match="needs the package litellm: install it"):
        LiteLLMEngine("claude-3")("a")
