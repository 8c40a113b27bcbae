"""A recorded experiment on a page: the drawing says what the record says, and so do the words beside it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup, Tag

from gradspec._record import read_experiment
from gradspec.report import RecordError
from gradspec_lab.sphinx.drawing._frame import CHARACTER, WIDTH
from gradspec_lab.sphinx.drawing._plot_record import Axis, Figure, Line, figure_of, number_of
from gradspec_lab.sphinx.drawing._plot_svg import svg
from sphinx_ext.handmade import Built, Project, copied, edited, resealed, source_of

CONTRAST = 3.0


def prepared(folder: Path) -> Project:
    """Return the mini-project, its record made of its script as it is."""
    project = copied("test-plot", folder)
    key = source_of(project.source / "train.py").key
    resealed(project.record, lambda data: data["sources"]["experiment"].update(key=key))
    return project


@pytest.fixture
def plots(tmp_path: Path) -> Project:
    return prepared(tmp_path)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    made = prepared(tmp_path_factory.mktemp("plot")).build("-j", "2")
    assert (made.returncode, made.warnings) == (0, [])
    return made


def figures(built: Built, page: str = "index") -> list[Tag]:
    return list(BeautifulSoup(built.html(page), "html.parser").find_all("figure"))


def one(found: Tag, selector: str) -> Tag:
    (tag,) = found.select(selector)
    return tag


def corners(tag: Tag) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in str(tag["points"]).split())]


def test_the_mean_and_the_range_are_drawn_where_the_record_has_them(built: Built) -> None:
    error = figures(built)[0]
    grid = [float(str(line["y1"])) for line in error.select("line.gradspec-grid")]
    texts = [text.get_text() for text in error.select("text")]
    ticks = [float(text.rstrip("%")) / 100 for text in texts if text.endswith("%")]
    assert (ticks[0], ticks[-1]) == (0.0, 0.8)

    def value(y: float) -> float:
        return ticks[0] + (grid[0] - y) / (grid[0] - grid[-1]) * (ticks[-1] - ticks[0])

    noise, pixels = error.select("polyline")
    assert [value(y) for _, y in corners(noise)] == pytest.approx([0.6, 0.3, 0.075], abs=0.001)
    assert [value(y) for _, y in corners(pixels)] == pytest.approx([0.3] * 3, abs=0.001)
    band = one(error, "polygon")
    assert [value(y) for _, y in corners(band)] == pytest.approx([0.7, 0.35, 0.125, 0.025, 0.25, 0.5], abs=0.001)


def test_a_logarithmic_axis_gives_each_decade_the_same_room(built: Built) -> None:
    line = corners(figures(built)[1].select("polyline")[0])
    (x0, y0), (x1, y1), (x2, y2) = line
    assert (x2 - x1) == pytest.approx(2 * (x1 - x0), abs=0.2)
    assert (y1 - y2) == pytest.approx(2 * (y0 - y1), abs=0.2)
    assert {"1000", "10000", "100000", "1e+06"} <= {text.get_text() for text in figures(built)[1].select("text")}


def test_a_long_number_under_the_last_tick_is_not_cut_off() -> None:
    line = Line(label="a", x=(100.0, 100_000.0), runs=((0.0, 1.0),))
    figure = Figure(title="t", x=Axis(label="elements", scale="log"), y=Axis(label="y"), lines=(line,))
    texts = BeautifulSoup(svg(figure, "n"), "html.parser").select("text[text-anchor=middle]")
    (last,) = (text for text in texts if text.get_text() == "100000")
    assert float(str(last["x"])) + len("100000") * CHARACTER / 2 <= WIDTH


def test_a_page_may_choose_a_logarithmic_axis(plots: Project) -> None:
    page = plots.source / "rest.rst"
    page.write_text("In reST\n=======\n\n.. gradspec-curves:: record.json error\n   :log:\n", encoding="utf-8")
    built = plots.build()
    assert (built.returncode, built.warnings) == (0, [])
    noise = figures(built, "rest")[0].select("polyline")[0]
    (_, first), (_, second), (_, third) = corners(noise)  # 0.6, 0.3 and 0.075
    assert third - second == pytest.approx(2 * (second - first), abs=0.2)
    resealed(plots.record, lambda data: data["figures"]["error"]["lines"][1]["runs"][0].__setitem__(2, 0))
    assert any("the log axis 'wrong answers' cannot show 0.0" in line for line in plots.build().warnings)


def test_an_axis_may_show_zero() -> None:
    line = Line(label="a", x=(1.0, 2.0), runs=((3.0, 4.0),))
    lowest = {}
    for zero in (False, True):
        figure = Figure(title="t", x=Axis(label="x"), y=Axis(label="y", zero=zero), lines=(line,))
        soup = BeautifulSoup(svg(figure, "n"), "html.parser")
        grid = [float(str(tag["y1"])) for tag in soup.select("line.gradspec-grid")]
        drawn = corners(soup.select("polyline")[0])
        lowest[zero] = (grid[0] - drawn[0][1]) / (grid[0] - drawn[1][1])
    assert lowest[False] != pytest.approx(0.75, abs=0.01)
    assert lowest[True] == pytest.approx(0.75, abs=0.001)
    record = {"figures": {"f": {"title": "t", "x": {"label": "x", "values": [1]}, "y": {"label": "y"}}}}
    record["figures"]["f"]["lines"] = [{"label": "a", "runs": [[1]]}]  # type: ignore[assignment]
    assert figure_of(record, "f", zero=True).y.zero
    with pytest.raises(RecordError, match="the log axis 'y' cannot show 0"):
        figure_of(record, "f", log=True, zero=True)


def test_a_figure_says_in_words_what_it_shows(built: Built) -> None:
    error = figures(built)[0]
    drawing = one(error, "svg")
    named = [one(error, f"#{name}").get_text() for name in str(drawing["aria-labelledby"]).split()]
    assert drawing["role"] == "img"
    assert named == [
        "Error on test images",
        "wrong answers over epoch. noise: 60.0% at 1, 7.5% at 3; raw <pixels>: 30.0% at 1, 30.0% at 3.",
    ]
    assert "The error falls, faster with noise." in one(error, "figcaption").get_text()
    assert {"noise", "raw <pixels>", "epoch", "wrong answers"} <= {text.get_text() for text in error.select("text")}


def test_the_numbers_stand_in_a_table_beside_it(built: Built) -> None:
    soup = BeautifulSoup(built.html(), "html.parser")
    rows = [[cell.get_text().strip() for cell in row.select("th, td")] for row in soup.select("table tr")]
    assert rows[:4] == [
        ["epoch", "noise", "raw <pixels>"],
        ["1", "60.0% (50.0% to 70.0%)", "30.0%"],
        ["2", "30.0% (25.0% to 35.0%)", "30.0%"],
        ["3", "7.5% (2.5% to 12.5%)", "30.0%"],
    ]
    assert rows[4:] == [
        ["rows", "ours", "published"],
        ["1000", "1", "2"],
        ["10000", "10", "20"],
        ["1,000,000", "1e+03", ""],
    ]
    text = soup.get_text()
    assert "Mean of 2 runs" in text
    assert "Measured on 2026-01-02 with torch 2.13.0, device cpu." in text
    assert "Measure it again with python train.py." in text
    assert "has changed since" not in text


def test_a_number_in_a_sentence_is_the_records(built: Built) -> None:
    text = " ".join(BeautifulSoup(built.html(), "html.parser").get_text().split())
    assert "The last error with noise is 12.5%, of 2." in text
    assert "gradspec-older" not in built.html()


def test_the_name_of_a_drawing_is_unique_and_each_line_has_a_style_of_its_own(built: Built) -> None:
    soup = BeautifulSoup(built.html(), "html.parser")
    names = [tag["id"] for tag in soup.select("[id]")]
    assert len(names) == len(set(names))
    styles = [str(line["class"]) for line in figures(built)[0].select("polyline")]
    assert len(set(styles)) == 2


def test_a_page_in_rest_has_the_same_figure(built: Built) -> None:
    ours, theirs = figures(built)[0], figures(built, "rest")[0]
    assert str(one(ours, "svg")) == str(one(theirs, "svg"))
    assert "is 12.5%." in built.html("rest")


def test_the_same_figure_twice_on_a_page(plots: Project) -> None:
    page = plots.source / "rest.rst"
    page.write_text(page.read_text(encoding="utf-8") + "\n.. gradspec-curves:: record.json error\n", encoding="utf-8")
    built = plots.build()
    assert (built.returncode, built.warnings) == (0, [])
    assert [one(figure, "svg")["id"] for figure in figures(built, "rest")] == [
        "record-error-plot",
        "record-error-2-plot",
    ]


def test_other_builders_have_the_table(plots: Project) -> None:
    built = plots.build("-b", "xml")
    assert (built.returncode, built.warnings) == (0, [])
    assert "<paragraph>60.0% (50.0% to 70.0%)</paragraph>" in (built.folder / "index.xml").read_text(encoding="utf-8")


def no_figure(data: Any) -> None:
    del data["figures"]["cost"]


def zero_on_a_log_axis(data: Any) -> None:
    data["figures"]["cost"]["lines"][0]["runs"][0][0] = 0


def short_run(data: Any) -> None:
    data["figures"]["error"]["lines"][0]["runs"][1].pop()


def test_a_path_with_a_space_is_quoted(plots: Project) -> None:
    resealed(plots.source / "record.json", lambda data: data["numbers"].update({"much noise": 0.25}))
    with (plots.source / "index.md").open("a", encoding="utf-8") as page:
        page.write('\nThen {gradspec:number}`record.json "numbers.much noise" .0%`.\n')
    built = plots.build()
    assert (built.returncode, built.warnings) == (0, [])
    assert "Then 25%." in built.html()


def no_number(data: Any) -> None:
    data["numbers"] = {"silence": [1]}


def text_for_a_number(data: Any) -> None:
    data["numbers"]["noise"][1] = "few"


@pytest.mark.parametrize(
    ("edit", "subtype", "words"),
    [
        (no_figure, "unknown", ("index.md:10:", "no figure 'cost'", "it holds: error")),
        (zero_on_a_log_axis, "record", ("figure 'cost'", "the log axis 'ms' cannot show 0.0")),
        (short_run, "record", ("figure 'error'", "the runs of 'noise' are not of 3 values each")),
        (no_number, "unknown", ("index.md:7:", "no 'noise' in numbers", "it holds: silence")),
        (text_for_a_number, "unknown", ("'few', which the format '.1%' does not fit",)),
    ],
    ids=["no figure", "zero on a log axis", "short run", "no number", "text for a number"],
)
def test_what_a_record_does_not_hold_fails_the_build_twice(
    plots: Project, edit: Any, subtype: str, words: tuple[str, ...]
) -> None:
    resealed(plots.record, edit)
    fails_twice(plots, subtype, words)


def no_checksum(data: Any) -> None:
    del data["checksum"]


def other_number(data: Any) -> None:
    data["figures"]["error"]["lines"][0]["runs"][0][0] = 0.4


def other_date(data: Any) -> None:
    data["provenance"]["date"] = "2026-12-31 03:04 UTC"


def other_key(data: Any) -> None:
    data["sources"]["experiment"]["key"] = "0123456789abcdef"


@pytest.mark.parametrize("edit", [no_checksum, other_number, other_date, other_key], ids=lambda edit: edit.__name__)
def test_a_record_that_was_edited_by_hand_is_refused(plots: Project, edit: Any) -> None:
    edited(plots.record, edit)
    fails_twice(plots, "record", ("figure 'error'", "has been edited since it was measured", "measure it again"))


def test_a_record_of_another_schema_is_refused(plots: Project) -> None:
    edited(plots.record, lambda data: data.update(schema=99))
    fails_twice(plots, "record", ("schema version 99", "measure it again"))


def fails_twice(plots: Project, subtype: str, words: tuple[str, ...]) -> None:
    for attempt in ("first build", "incremental build"):
        built = plots.build()
        assert built.returncode == 1, attempt
        found = [line for line in built.warnings if f"[gradspec.{subtype}]" in line]
        assert found, built.warnings
        assert any(all(word in line for word in words) for line in found), found
        assert "Traceback" not in "".join(built.warnings)
    assert "not measured" in built.html() + built.html("rest")


def test_a_missing_record_is_named(plots: Project) -> None:
    plots.record.unlink()
    for _ in range(2):
        built = plots.build()
        assert built.returncode == 1
        assert any(str(plots.record) in line and "[gradspec.record]" in line for line in built.warnings)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_line_has_contrast(scheme: str) -> None:
    """WCAG 1.4.11: 3 to 1 against the background, here furo's."""
    from gradspec_lab.sphinx._setup import STYLE
    from gradspec_lab.sphinx.drawing._plot_svg import STYLES

    blocks = re.findall(r"\{\n((?: +--gradspec-style-\d: #\w{6};\n)+)", STYLE.read_text(encoding="utf-8"))
    light, dark, chosen = (re.findall(r"#(\w{6})", block) for block in blocks)
    assert dark == chosen, "dark by the system and dark by choice are the same"
    colours = light if scheme == "light" else dark
    background = "ffffff" if scheme == "light" else "131416"
    assert len(colours) == STYLES
    assert [c for c in colours if contrast(c, background) < CONTRAST] == []


def contrast(first: str, second: str) -> float:
    low, high = sorted(map(luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_script_that_the_reference_shows_writes_what_a_page_reads(plots: Project) -> None:
    page = (Path(__file__).parents[2] / "src/gradspec_lab/sphinx/README.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    script, path = plots.source / "train.py", plots.source / "record.json"
    script.write_text(text, encoding="utf-8")
    path.unlink()
    subprocess.run([sys.executable, script.name], cwd=plots.source, check=True)
    record = read_experiment(path)
    (line,) = figure_of(record, "test_error").lines
    assert (line.low, line.high) == ((0.5, 0.025), (0.7, 0.125))
    assert number_of(record, "numbers.noise.mean") == line.mean[-1]
    assert record["provenance"]["command"] == "python train.py"

    (plots.source / "rest.rst").unlink()
    (plots.source / "index.md").write_text("# Plot\n\n```{gradspec-curves} record.json test_error\n```\n")
    built = plots.build()
    assert (built.returncode, built.warnings) == (0, [])
    assert "Measured on" in built.html()
