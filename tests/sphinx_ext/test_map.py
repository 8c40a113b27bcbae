"""A map on a page: bands and numbered lines are where the values of the record are, and the words say it again."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from bs4 import BeautifulSoup, Tag

from gradspec_lab.sphinx._setup import STYLE
from gradspec_lab.sphinx.drawing._frame import END, LEFT
from gradspec_lab.sphinx.drawing._map_contour import regions
from gradspec_lab.sphinx.drawing._map_record import Map
from gradspec_lab.sphinx.drawing._map_svg import BASE, SHADES, TOP, described, map_svg, shade
from gradspec_lab.sphinx.drawing._plot_record import Axis
from sphinx_ext.handmade import copied, resealed
from sphinx_ext.test_plot import luminance

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sphinx_ext.handmade import Built, Project

#: The value is 10 x + 20 y, so that each line of equal value is straight.
SLOPE = Map(
    title="A <slope>",
    x=Axis(label="east"),
    y=Axis(label="north"),
    value=Axis(label="height", format=".1f"),
    columns=(0.0, 1.0, 2.0),
    rows=(0.0, 1.0),
    values=((0.0, 10.0, 20.0), (20.0, 30.0, 40.0)),
)


def drawing(shown: Map = SLOPE) -> BeautifulSoup:
    return BeautifulSoup(map_svg(shown, "n"), "html.parser")


def corners(tag: Tag) -> list[tuple[float, float]]:
    pairs = re.findall(r"([\d.]+),([\d.]+)", str(tag["d"]))
    return [(float(x), float(y)) for x, y in pairs]


def height(x: float, y: float) -> float:
    """Return the value at a place of the drawing."""
    return 20 * (x - LEFT) / (END - LEFT) + 20 * (BASE - y) / (BASE - TOP)


def test_each_line_lies_where_the_value_is_that_of_its_number() -> None:
    soup = drawing()
    paths = soup.select("path")
    texts = soup.select("text.gradspec-level")
    assert [text.get_text() for text in texts] == ["10", "20", "30"]
    for level, path in zip((10, 20, 30), paths, strict=True):
        values = [height(*corner) for corner in corners(path)]
        assert min(values) == pytest.approx(level, abs=0.02)
        assert max(values) == pytest.approx(40, abs=0.02)
        assert sum(value == pytest.approx(level, abs=0.02) for value in values) >= 3
    for text in texts:
        assert height(float(str(text["x"])), float(str(text["y"])) - 4) == pytest.approx(int(text.get_text()), abs=0.02)


def test_what_is_lower_than_all_around_it_is_a_hole_in_the_band() -> None:
    values = tuple(tuple(0.0 if (i, j) == (2, 2) else 4.0 for i in range(5)) for j in range(5))
    places = tuple(map(float, range(5)))
    (path, *_) = drawing(replace(SLOPE, columns=places, rows=places, values=values)).select("path")
    assert path["fill-rule"] == "evenodd"
    assert str(path["d"]).count("M") == str(path["d"]).count("Z") == 2


def test_bands_have_the_shades_of_the_legend_from_the_lowest_to_the_highest() -> None:
    soup = drawing()
    legend = [str(tag["class"]) for tag in soup.select("rect.gradspec-contour")]
    assert len(legend) == len(set(legend)) == 4
    shown = [soup.select("rect")[4], *soup.select("path")]
    assert [str(tag["class"]).replace("'gradspec-contour', ", "") for tag in shown] == [
        one.replace("'gradspec-contour', ", "") for one in legend
    ]
    assert [shade(i, 4) for i in (0, 3)] == ["gradspec-shade-1", f"gradspec-shade-{SHADES}"]
    assert {"0", "10", "20", "30", "40", "east", "north", "height"} <= {text.get_text() for text in soup.select("text")}


def test_a_map_says_in_words_what_it_shows() -> None:
    soup = drawing()
    named = [soup.select_one(f"#{name}").get_text() for name in str(soup.svg["aria-labelledby"]).split()]  # type: ignore[union-attr, index]
    assert named == ["A <slope>", described(SLOPE)]
    assert described(SLOPE) == (
        "height over east (across) and north (up). Lowest: 0.0 at 0, 0. Highest: 40.0 at 2, 1. "
        "Corners: 0.0 at 0, 0; 20.0 at 2, 0; 20.0 at 0, 1; 40.0 at 2, 1."
    )


def area(line: list[tuple[float, float]]) -> float:
    return abs(sum(a * d - b * c for (a, b), (c, d) in zip(line, [*line[1:], line[0]], strict=True))) / 2


@pytest.mark.parametrize(
    ("values", "areas"),
    [
        ([[0, 0, 0], [0, 2, 0], [0, 0, 0]], [0.5]),  # a peak: a square on its corner
        ([[2, 2, 2], [2, 0, 2], [2, 2, 2]], [0.5, 4.0]),  # a hole, and the edge around it
        ([[2, 0], [0, 2]], [0.75]),  # a saddle whose mean is inside: two corners that hang together
        ([[1.5, 0], [0, 1.5]], [1 / 18, 1 / 18]),  # one whose mean is outside: two corners apart
        ([[0, 0], [0, 0]], []),
        ([[2, 2], [2, 2]], [1.0]),
    ],
    ids=["peak", "hole", "joined saddle", "parted saddle", "below", "above"],
)
def test_what_is_at_a_level_or_above_has_the_right_area(values: list[list[float]], areas: list[float]) -> None:
    places = [float(i) for i in range(len(values))]
    found = regions(places, places, values, 1.0)
    assert sorted(area(line) for line in found) == pytest.approx(areas)


@pytest.mark.parametrize("block", [0, 1, 2], ids=["light", "dark by the system", "dark by choice"])
def test_lightness_goes_one_way_in_steps_that_are_seen(block: int) -> None:
    blocks = re.findall(r"\{\n((?: +--gradspec-shade-\d: #\w{6};\n)+)", STYLE.read_text(encoding="utf-8"))
    colours = re.findall(r"#(\w{6})", blocks[block])
    lightness = [116 * luminance(colour) ** (1 / 3) - 16 for colour in colours]
    assert len(colours) == SHADES
    steps = [b - a for a, b in pairwise(lightness)]
    assert all(step < -5 for step in steps) if block == 0 else all(step > 5 for step in steps)
    assert blocks[1].split() == blocks[2].split()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = copied("test-plot", tmp_path)
    (made.source / "rest.rst").unlink()
    page = "# Map\n\n```{gradspec-map} record.json slope\nIt *rises*.\n```\n"
    (made.source / "index.md").write_text(page, encoding="utf-8")
    slope = {
        "title": "A slope",
        "x": {"label": "east", "values": [0, 1, 2, 3, 4, 5, 6]},
        "y": {"label": "north", "values": [0, 1]},
        "value": {"label": "height", "format": ".1f"},
        "rows": [[0, 1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12, 13]],
    }
    resealed(made.record, lambda data: data.update(maps={"slope": slope}, sources={}))
    return made


def built(project: Project) -> Built:
    return project.build("-E")


def test_the_page_has_the_map_its_caption_and_some_numbers_in_a_table(project: Project) -> None:
    done = built(project)
    assert (done.returncode, done.warnings) == (0, [])
    soup = BeautifulSoup(done.html(), "html.parser")
    rows = [[cell.get_text().strip() for cell in row.select("th, td")] for row in soup.select("table tr")]
    assert rows == [
        ["north (down), east (across)", "0", "1", "2", "4", "5", "6"],
        ["1", "7.0", "8.0", "9.0", "11.0", "12.0", "13.0"],
        ["0", "0.0", "1.0", "2.0", "4.0", "5.0", "6.0"],
    ]
    assert "It rises." in soup.select_one("figcaption").get_text()  # type: ignore[union-attr]
    assert "Measured on 2026-01-02 with torch 2.13.0" in soup.get_text()


@pytest.mark.parametrize(
    ("edit", "subtype", "words"),
    [
        (lambda data: data["maps"].clear(), "unknown", "it holds no map 'slope' (it holds: none)"),
        (lambda data: data["maps"]["slope"]["rows"].pop(), "record", "the rows are not 2 of 7 values each"),
        (lambda data: data["maps"]["slope"]["rows"][0].pop(), "record", "the rows are not 2 of 7 values each"),
        (lambda data: data["maps"]["slope"]["y"].update(values=[1, 0]), "record", "'north' are not two or more that"),
        (lambda data: data["maps"]["slope"]["x"].update(scale="log"), "record", "the log axis 'east' cannot show 0.0"),
        (lambda data: data["maps"]["slope"].pop("value"), "record", "KeyError: 'value'"),
    ],
    ids=["no map", "a row is missing", "a value is missing", "falling places", "zero on a log axis", "no value"],
)
def test_a_map_that_cannot_be_drawn_fails_the_build_each_time(
    project: Project, edit: Callable[[Any], object], subtype: str, words: str
) -> None:
    resealed(project.record, edit)
    for _ in range(2):
        done = project.build()
        assert done.returncode == 1
        assert any(words in line and f"[gradspec.{subtype}]" in line for line in done.warnings), done.warnings
