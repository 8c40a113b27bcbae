"""Put a built site into a folder of its version, and tell every version there of the others.

    python -m gradspec_lab.site.publish build/html build/site

`build/site` then has a folder for each version and a first page that leads to the newest. Any server of files can host
it. The version is that of the site; publishing it again replaces its folder.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from pathlib import Path

#: What Sphinx keeps for itself.
PRIVATE = (".doctrees", ".buildinfo")
#: Where a page reads the other versions.
LIST = Path("_static", "versions.js")
LEADS_TO = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={version}/index.html">
<title>gradspec</title>
<p><a href="{version}/index.html">gradspec {version}</a></p>
</html>
"""


def version_of(site: Path) -> str:
    """Return the version that a built site is of: its inventory says it."""
    head = (site / "objects.inv").read_bytes().split(b"\n", 3)[2].decode()
    return head.removeprefix("# Version: ").strip()


def newest_first(names: list[str]) -> list[str]:
    """Return versions in the order of their numbers; 0.10 is newer than 0.9, and a release than its candidates."""

    def key(name: str) -> tuple[list[int], bool, str]:
        release = re.match(r"\d+(?:\.\d+)*", name)
        numbers = [int(number) for number in release[0].split(".")] if release else []
        return numbers, bool(release) and release[0] == name, name

    return sorted(names, key=key, reverse=True)


def publish(site: Path, into: Path) -> list[str]:
    """Copy a site into the folder of its version, and return all versions that are there, the newest first."""
    folder = into / version_of(site)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(site, folder, ignore=shutil.ignore_patterns(*PRIVATE))
    versions = newest_first([found.parent.parent.name for found in into.glob(f"*/{LIST.as_posix()}")])
    for version in versions:
        (into / version / LIST).write_text(f"globalThis.siteVersions = {json.dumps(versions)};\n", encoding="utf-8")
    (into / "index.html").write_text(LEADS_TO.format(version=versions[0]), encoding="utf-8")
    return versions


def main() -> None:
    """Publish, and say which versions are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=Path, help="what sphinx-build wrote")
    parser.add_argument("into", type=Path, help="holds a folder for each version")
    options = parser.parse_args()
    print(f"{options.into} holds {', '.join(publish(options.site, options.into))}")


if __name__ == "__main__":
    main()
