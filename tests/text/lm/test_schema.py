"""The JSON schema of a reply: each keyword, and what is not checked is refused."""

import re

import pytest

from gradspec.text.lm import Client, SchemaError
from gradspec.text.lm._schema import KEYWORDS, parse
from gradspec.text.lm._schema_check import ARGUMENTS, check_schema

#: keyword: (schema, values that satisfy it, values that do not), as JSON.
TABLE = {
    "type": ({"type": ["integer", "null"]}, ["1", "1.0", "null", "-3e2"], ["1.5", '"1"', "true", "[]", "{}", "1e999"]),
    "number": ({"type": "number"}, ["1", "1.5"], ["true", '"1"']),
    "boolean": ({"type": "boolean"}, ["true"], ["1", "null"]),
    "properties": ({"properties": {"a": {"type": "string"}}}, ["{}", '{"a": ""}', '{"b": 1}', "3"], ['{"a": 1}']),
    "required": ({"required": ["a", "b"]}, ['{"a": 1, "b": 2}', "[]"], ["{}", '{"a": 1}']),
    "additionalProperties": (
        {"properties": {"a": {}}, "additionalProperties": False},
        ["{}", '{"a": 1}', "3"],
        ['{"b": 1}'],
    ),
    "additional schema": ({"additionalProperties": {"type": "integer"}}, ['{"a": 1}'], ['{"a": "1"}']),
    "items": ({"items": {"type": "integer"}}, ["[]", "[1, 2]", "3"], ['[1, "2"]']),
    "anyOf": ({"anyOf": [{"type": "string"}, {"minimum": 3}]}, ['"a"', "3"], ["2"]),
    "allOf": ({"allOf": [{"minimum": 1}, {"maximum": 3}]}, ["1", "3"], ["0", "4"]),
    "oneOf": ({"oneOf": [{"minimum": 3}, {"maximum": 5}]}, ["1", "9"], ["4"]),
    "not": ({"not": {"type": "string"}}, ["1"], ['"a"']),
    "enum": ({"enum": ["a", 1, None]}, ['"a"', "1", "1.0", "null"], ["true", '"b"', "0", "[]"]),
    "const": ({"const": {"a": [1, False]}}, ['{"a": [1.0, false]}'], ['{"a": [1, 0]}', '{"a": [1]}', "{}"]),
    "minimum": ({"minimum": 3}, ["3", '"a"', "true"], ["2.9"]),
    "maximum": ({"maximum": 3}, ["3"], ["3.1"]),
    "exclusiveMinimum": ({"exclusiveMinimum": 3}, ["3.1"], ["3"]),
    "exclusiveMaximum": ({"exclusiveMaximum": 3}, ["2.9"], ["3"]),
    "multipleOf": ({"multipleOf": 0.1}, ["0.3", "1"], ["0.35", "1e999"]),
    "minLength": ({"minLength": 2}, ['"ab"', "1"], ['"a"']),
    "maxLength": ({"maxLength": 2}, ['"ab"', '"\\ud83d\\ude00a"'], ['"abc"']),
    "pattern": ({"pattern": "^a"}, ['"ab"', "1"], ['"ba"']),
    "minItems": ({"minItems": 1}, ["[1]", "3"], ["[]"]),
    "maxItems": ({"maxItems": 1}, ["[1]"], ["[1, 2]"]),
    "uniqueItems": ({"uniqueItems": True}, ["[1, true, [1]]"], ["[1, 1.0]", "[[1], [1]]"]),
    "uniqueItems false": ({"uniqueItems": False}, ["[1, 1]"], []),
    "$ref": ({"$defs": {"a/b": {"minimum": 1}}, "items": {"$ref": "#/$defs/a~1b"}}, ["[1]"], ["[0]"]),
    "$ref to itself": ({"items": {"$ref": "#"}, "type": "array"}, ["[[[]]]"], ["[[3]]"]),
    "false": ({"properties": {"a": False}}, ["{}"], ['{"a": 1}']),
    "true": ({"properties": {"a": True}}, ['{"a": 1}'], []),
    "notes": ({"title": "T", "description": "D", "format": "date", "default": 3, "examples": [1]}, ["1"], []),
}


@pytest.mark.parametrize(("schema", "right", "wrong"), TABLE.values(), ids=TABLE)
def test_a_keyword(schema, right, wrong):
    check_schema(schema)
    assert [parse(text, schema)[1] for text in right] == [[]] * len(right)
    assert [text for text in wrong if not parse(text, schema)[1]] == []


def test_every_keyword_is_in_the_table():
    assert set(KEYWORDS) <= set(TABLE)
    assert set(ARGUMENTS) == {*KEYWORDS, "$defs", "$ref", "additionalProperties"}


def test_a_problem_says_where_and_what():
    schema = {"properties": {"rows": {"items": {"required": ["x"], "properties": {"x": {"maximum": 3}}}}}}
    _, problems = parse('{"rows": [{"x": 1}, {"x": 9}, {}]}', schema)
    assert problems == ["$.rows[1].x is 9, above the maximum of 3", "$.rows[2] has no 'x'"]


@pytest.mark.parametrize("text", ["", "certainly: {}", "{", "NaN", '{"a": Infinity}', "[" * 100_000, "```json\n{\n```"])
def test_what_is_no_json_is_said_to_be_none(text):
    value, problems = parse(text, {})
    assert value is None
    assert problems[0].startswith("it is not JSON")


@pytest.mark.parametrize("text", ["```json\n[1]\n```", "\n```\n[1]\n```\n", " [1] "])
def test_a_fence_is_taken_off(text):
    assert parse(text, {"type": "array"}) == ([1], [])


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"patternProperties": {}}, "uses 'patternProperties', which is not supported"),
        ({"properties": {"a": {"items": {"contains": {}}}}}, "'contains'"),
        ({"anyOf": [{"if": {}}]}, "'if'"),
        ({"$defs": {"a": {"dependentRequired": {}}}}, "'dependentRequired'"),
        ({"additionalProperties": {"minProperties": 1}}, "'minProperties'"),
        ({"type": "int"}, "'int' for 'type'"),
        ({"$ref": "https://example.org/a.json"}, "only references within it"),
        ({"items": 3}, "a JSON schema is a mapping, not a int"),
    ],
)
def test_what_would_pass_unchecked_is_refused_before_a_call(schema, says):
    calls = []
    with pytest.raises(ValueError, match=says):
        Client(lambda messages, **_: calls.append(1))("hi", schema=schema)
    assert calls == []


def test_a_reply_cut_at_its_limit_says_so():
    from gradspec.text.lm import Completion

    with pytest.raises(SchemaError, match="It was cut at max_tokens") as caught:
        Client(lambda m, **_: Completion(text='{"a', finish_reason="length"), schema_attempts=1)("hi", schema={})
    assert caught.value.problems[0].startswith("it is not JSON")


def test_without_a_schema_any_text_will_do():
    found = Client(lambda m: "certainly!")("hi")
    assert (found.text, found.value) == ("certainly!", None)


LOOPS = [
    {"$ref": "#"},
    {"allOf": [{"$ref": "#"}]},
    {"anyOf": [{"type": "null"}, {"not": {"$ref": "#"}}]},
    {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"oneOf": [{"$ref": "#/$defs/a"}]}}, "items": {"$ref": "#/$defs/a"}},
]


@pytest.mark.parametrize("schema", LOOPS)
def test_a_reference_that_leads_back_to_itself_is_refused_before_a_call(schema):
    with pytest.raises(ValueError, match="leads back to itself"):
        check_schema(schema)


def test_a_recursive_schema_that_takes_a_step_into_the_value_is_no_loop():
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"anyOf": [{"$ref": "#"}, False]}}}
    check_schema(tree)
    assert parse('{"left": {"left": {}}, "right": {}}', tree)[1] == []
    assert parse('{"left": {"left": 3}}', tree)[1] == ["$.left.left is 3, not of type object"]


@pytest.mark.parametrize("reference", ["#/$defs/a", "#/items/0", "#/title/x"])
def test_a_reference_that_leads_nowhere_is_refused_before_a_call(reference):
    with pytest.raises(ValueError, match="leads nowhere"):
        check_schema({"$ref": reference, "title": "t", "items": {}})


def test_a_schema_that_holds_itself_is_named():
    schema = {}
    schema["items"] = schema
    with pytest.raises(ValueError, match="holds itself, or is nested too deeply"):
        check_schema(schema)


@pytest.mark.parametrize("depth", [600, 900, 5000, 100_000])
def test_a_deep_reply_is_checked_or_named(depth):
    tree = {"type": "array", "items": {"allOf": [{"$ref": "#"}]}, "uniqueItems": True}
    check_schema(tree)
    value, problems = parse("[" * depth + "]" * depth, tree)
    assert value is None
    assert len(problems) == 1
    assert "deep" in problems[0] or "recursion" in problems[0]


def test_unique_items_take_no_quadratic_time():
    import json
    import time

    schema = {"uniqueItems": True}
    start = time.process_time()
    assert parse(json.dumps([{"a": [i, str(i)]} for i in range(20_000)]), schema)[1] == []
    assert time.process_time() - start < 5  # 40 s before, where each was compared with each


@pytest.mark.parametrize("repeats", ['[{"a": 1, "b": [2]}, {"b": [2.0], "a": 1.0}]', '["a", "a"]', "[null, null]"])
def test_what_is_equal_in_json_is_no_two_items(repeats):
    assert parse(repeats, {"uniqueItems": True})[1] != []


@pytest.mark.parametrize("distinct", ["[1, true]", "[0, false]", '[1, "1"]', "[[], {}]", "[[1], [true]]", "[null, 0]"])
def test_what_is_not_equal_in_json_is_two_items(distinct):
    assert parse(distinct, {"uniqueItems": True})[1] == []


@pytest.mark.parametrize(
    "schema",
    [
        {"minimum": "3"},
        {"multipleOf": 0},
        {"maxLength": -1},
        {"minItems": 1.5},
        {"pattern": "("},
        {"required": "name"},
        {"enum": 3},
        {"anyOf": []},
        {"anyOf": {}},
        {"properties": []},
        {"uniqueItems": 1},
        {"type": []},
        {"$ref": 3},
        {"exclusiveMaximum": float("nan")},
    ],
)
def test_a_keyword_with_a_nonsensical_argument_is_refused_before_a_call(schema):
    with pytest.raises(ValueError, match=f"JSON schema.*{re.escape(next(iter(schema)))}"):
        check_schema(schema)
