"""The pytest plugin: one item for each spec, law and case. It imports torch only when specs are asked for."""

from gradspec_pytest._hooks import (
    pytest_collection_finish,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_report_header,
    pytest_runtest_makereport,
)
from gradspec_pytest._items import LawItem, SpecCollector
from gradspec_pytest._marks import parametrize_with_laws, pytest_generate_tests
from gradspec_pytest._options import pytest_addoption

__all__ = [
    "LawItem",
    "SpecCollector",
    "parametrize_with_laws",
    "pytest_addoption",
    "pytest_collection_finish",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_generate_tests",
    "pytest_report_header",
    "pytest_runtest_makereport",
]
