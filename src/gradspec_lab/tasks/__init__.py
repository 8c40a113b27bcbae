"""The tasks of `nox -s lab`, and the environments of all sessions."""

from gradspec_lab.tasks._environment import (
    BUILD,
    BUILD_SITE,
    CHECK,
    ONE_THREAD,
    PYPROJECT,
    ROOT,
    a_site,
    install,
    needed,
)
from gradspec_lab.tasks._tasks import HASHES, TASKS, install_published

__all__ = [
    "BUILD",
    "BUILD_SITE",
    "CHECK",
    "HASHES",
    "ONE_THREAD",
    "PYPROJECT",
    "ROOT",
    "TASKS",
    "a_site",
    "install",
    "install_published",
    "needed",
]
