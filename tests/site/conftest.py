"""The built site: the folder in `GRADSPEC_SITE`, by default `build/html`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def site() -> Path:
    """Return the folder of the built site; without one the test is skipped, or fails where one is required."""
    folder = Path(os.environ.get("GRADSPEC_SITE") or Path(__file__).parents[2] / "build" / "html")
    if not (folder / "index.html").is_file():
        message = f"no site in {folder}: build it with `nox -s docs`, or name its folder in GRADSPEC_SITE"
        if os.environ.get("GRADSPEC_SITE_REQUIRED"):
            pytest.fail(message)
        pytest.skip(message)
    return folder


@pytest.fixture(scope="session")
def pages(site: Path) -> list[Path]:
    """Return every page of the site."""
    found = sorted(path for path in site.rglob("*.html") if "_static" not in path.relative_to(site).parts)
    assert len(found) > 100, "most pages are missing"
    return found
