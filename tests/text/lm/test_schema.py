"""The JSON schema of a reply: each keyword, and what is not checked is refused."""

import pytest

from gradspec.text.lm import Client, SchemaError
from gradspec.text.lm._schema import KEYWORDS, check_schema, parse

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
        ({"type": "int"}, "the type 'int'"),
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
