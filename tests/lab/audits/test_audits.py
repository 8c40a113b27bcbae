"""The record of the audits is of the table, nothing in it is an error of ours, and the how-to names what it holds."""

import re
from pathlib import Path

import pytest

from gradspec._record import read
from gradspec_lab.audits.audit_record import KIND, command, installed
from gradspec_lab.audits.audit_table import AUDITED

ROOT = Path(__file__).parents[3]
RECORD = read(ROOT / "docs" / "records" / "audits.json", KIND, again="nox -s lab -- measure audits")


def test_the_record_holds_what_the_table_names():
    rows = [(row["name"], row["version"], row["target"], row["case"]) for row in RECORD["audits"]]

    assert rows == [(a.name, a.version, a.target, a.case) for a in AUDITED]
    assert len(rows) >= 10


def test_no_audit_ended_in_an_error_and_each_finding_is_counted():
    for row in RECORD["audits"]:
        failed = {law: status for law, status in row["verdicts"].items() if status in ("broken", "inconclusive")}
        assert "error" not in row["verdicts"].values(), row["name"]
        assert {finding["law"]: finding["status"] for finding in row["findings"]} == failed


def test_the_how_to_shows_and_installs_versions_of_the_table():
    page = (ROOT / "docs" / "how-to" / "audit-a-function.md").read_text(encoding="utf-8")
    shown = re.findall(r"\{gradspec-audit\} ../records/audits.json (\S+)", page)
    pins = dict(re.findall(r"(\w+)==([\d.]+\d)", page))

    assert len(shown) == 3
    assert set(shown) <= {a.name for a in AUDITED}
    assert pins == {a.package: a.version for a in AUDITED if a.name in shown}


def test_a_file_is_named_where_pip_put_it():
    (timm,) = (a for a in AUDITED if a.package == "timm")

    assert command(timm, Path("site"))[2] == "site/timm/layers/activations_me.py:SwishAutoFn"


def test_another_version_is_refused(tmp_path):
    folder = tmp_path / "timm-0.1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: timm\nVersion: 0.1\n")
    (timm,) = (a for a in AUDITED if a.package == "timm")

    with pytest.raises(LookupError, match=r"timm 0\.1, and the table says 1\.0\.31"):
        installed(timm, tmp_path)
