"""The how-to pages are true: their Python runs."""

import re
from pathlib import Path

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"


def test_the_python_of_the_page_on_modules_runs():
    (block,) = re.findall(r"```python\n(.*?)```", (HOW_TO / "add-a-module.md").read_text(encoding="utf-8"), re.DOTALL)
    names = {"__name__": "how_to"}
    exec(compile(block, "add-a-module.md", "exec"), names)

    assert names["HEAD"].kind == "module"
