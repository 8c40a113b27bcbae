"""Records: what is written is what is read, and what cannot be read says so in one line."""

import json
from pathlib import Path

import jsonschema
import pytest

from gradspec._engine._verify import verify
from gradspec._record import to_text
from gradspec._record._file import checksum
from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec.report import SCHEMA, RecordError, Report, read_record, write_record
from gradspec_lab.specimens import DISEASED, SCALE

LAW = {law.name: law for law in LAWS}


@pytest.fixture(scope="module")
def report():
    return verify([SCALE, DISEASED["sign_flipped"].spec], [LAW["vjp"], LAW["wrong_call"], LAW["examples"]])


def test_a_record_survives_the_disk(report, tmp_path):
    write_record(report, tmp_path / "deep" / "record.json")
    read = read_record(tmp_path / "deep" / "record.json")

    assert read.to_json() == report.to_json()
    assert read.verdicts[0].finding == report.verdicts[0].finding
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["record.json"]


def test_a_record_says_where_when_on_what_and_of_which_source(report):
    assert {"date", "commit", "torch", "python", "device", "seed", "profile"} <= set(report.provenance)
    assert set(report.sources) >= {"spec scale", "law vjp", "law primal"}
    assert report.sources["law vjp"].roots == ("gradspec", "gradspec.laws.tensor._vjp")
    assert all(source.key for source in report.sources.values())
    files = [file.name for file in report.sources["law vjp"].reached().beneath]
    assert {"_vjp.py", "_compare.py", "_call.py"} <= set(files)


def edited(report, **changes):
    """Return a record of other content, with the checksum of that content."""
    record = json.loads(report.to_json()) | changes
    return json.dumps(record | {"checksum": checksum(record)})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "schema version None"),
        ('{"schema": 99}', f"schema version 99, and this gradspec reads {SCHEMA}"),
        (f'{{"schema": {SCHEMA}}}', "is a record of kind None, expected 'report'"),
        (to_text("report", {}), "is not a record of schema"),
    ],
)
def test_a_record_that_cannot_be_read_is_refused_in_one_line(text, message):
    with pytest.raises(RecordError, match=message) as caught:
        Report.from_json(text, where="x.json")

    assert "x.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_status_is_refused(report):
    data = json.loads(report.to_json())
    data["verdicts"][0]["status"] = "fine"

    with pytest.raises(RecordError, match="'fine' is not a valid Status"):
        Report.from_json(edited(report, verdicts=data["verdicts"]))


def test_verdicts_are_found_by_spec_law_and_case(report):
    assert {v.spec for v in report.failures} == {"sign_flipped"}
    assert {v.case for v in report.of(spec="scale", law="wrong_call")} == {"text"}


SCHEMA_FILE = Path(__file__).parents[2] / "docs" / "reference" / "report.schema.json"


def test_a_real_report_is_of_the_published_schema(report):
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    data = json.loads(report.to_json())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(data, schema, jsonschema.Draft202012Validator)

    assert schema["properties"]["schema"]["const"] == SCHEMA
    assert schema["$defs"]["verdict"]["properties"]["status"]["enum"] == [status.value for status in Status]
    assert set(schema["$defs"]["verdict"]["properties"]) == {*data["verdicts"][0], "reason"}


@pytest.mark.parametrize("change", [{"schema": 1}, {"verdicts": [{"status": "fine"}]}, {"extra": 1}])
def test_what_is_no_report_is_not_of_the_published_schema(report, change):
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    data = json.loads(report.to_json())

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data | change, schema)


@pytest.mark.parametrize(
    ("field", "value"), [("provenance", None), ("sheets", []), ("laws", []), ("laws", {"vjp": 3}), ("sources", [])]
)
def test_a_field_of_another_type_is_refused_when_it_is_read(report, field, value):
    with pytest.raises(RecordError, match=f"is not a record of schema {SCHEMA}"):
        Report.from_json(edited(report, **{field: value}))


@pytest.mark.parametrize(("field", "value"), [("spec", 3), ("spec", ["scale"]), ("details", 3), ("seconds", 0.1)])
def test_a_verdict_of_another_form_is_refused_when_it_is_read(report, field, value):
    data = json.loads(report.to_json())
    data["verdicts"][0][field] = value

    with pytest.raises(RecordError, match=f"the field {field} of a verdict is"):
        Report.from_json(edited(report, verdicts=data["verdicts"]))


def test_a_record_that_is_nested_without_end_is_refused():
    with pytest.raises(RecordError, match="is not JSON"):
        Report.from_json("[" * 100_000)
