"""The embedded model: rules in order, deterministic, offline."""

import pytest

from gradspec.text.lm import Cache, Client, ReplyError, RuleModel, Usage


def test_the_first_rule_that_matches_answers():
    model = RuleModel({r"(\w+) and (\w+)": r"\2 and \1", "and": "never"})
    assert model("salt and pepper").text == "pepper and salt"


def test_a_rule_looks_at_the_last_message_or_at_the_whole_conversation():
    chat = [{"role": "system", "content": "Shout."}, {"role": "user", "content": "hi"}]
    assert RuleModel({"Shout": "wrong", "hi": "right"})(chat).text == "right"
    assert RuleModel({r"(?s)system: Shout\..*user: (\w+)": r"\1!"})(chat).text == "hi!"


def test_a_rule_may_be_a_function():
    model = RuleModel({r"(\d+)\+(\d+)": lambda match, messages: str(int(match[1]) + int(match[2]))})
    assert model("What is 20+22?").text == "42"


def test_it_counts_words_as_tokens():
    assert RuleModel({}, default="three words long")("two words").usage == Usage(prompt_tokens=2, completion_tokens=3)


def test_what_no_rule_answers_is_named():
    with pytest.raises(ReplyError, match="no rule matches 'hello'; add one, or a default"):
        RuleModel({"bye": "bye"})("hello")


def test_rules_of_text_name_the_model_to_a_cache_and_functions_do_not(tmp_path):
    cache = Cache(tmp_path / "replies.sqlite3")
    assert not Client(RuleModel({"a": "1"}), cache=cache)("a").cached
    assert Client(RuleModel({"a": "1"}), cache=cache)("a").cached
    assert not Client(RuleModel({"a": "2"}), cache=cache)("a").cached
    by_function = RuleModel({"a": lambda match, messages: "3"})
    with pytest.raises(TypeError, match="answers are functions needs Client"):
        Client(by_function, cache=cache)
    assert Client(by_function, cache=cache, name="three")("a").text == "3"
