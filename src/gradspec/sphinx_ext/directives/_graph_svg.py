"""The graph of a text drawn as an SVG: boxes in layers, the leaves on top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

#: In pixels: the height of a box, the gap below a layer, the width of a letter, the gap beside a box.
BOX, GAP, LETTER, BESIDE = 30, 34, 7, 16


def svg(boxes: Mapping[str, str], arrows: Sequence[tuple[str, str]], title: str) -> str:
    """Return the drawing, in which everything is escaped.

    Args:
        boxes: the label of each, by name.
        arrows: the names of the box above and the box below.
        title: what a screen reader says of it.
    """
    layers = _layers(boxes, arrows)
    widths = {name: LETTER * len(label) + BESIDE for name, label in boxes.items()}
    total = max(sum(widths[name] + BESIDE for name in layer) for layer in layers)
    places: dict[str, tuple[int, int]] = {}
    for depth, layer in enumerate(layers):
        x = (total - sum(widths[name] + BESIDE for name in layer)) // 2
        for name in layer:
            places[name] = (x + (BESIDE + widths[name]) // 2, depth * (BOX + GAP) + 2)
            x += widths[name] + BESIDE
    height = len(layers) * (BOX + GAP) - GAP + 4
    lines = [
        f'<line x1="{places[a][0]}" y1="{places[a][1] + BOX}" x2="{places[b][0]}" y2="{places[b][1]}" '
        'stroke="currentColor"/>'
        for a, b in arrows
    ]
    drawn = [_box(boxes[name], *place, widths[name]) for name, place in places.items()]
    return (
        f'<svg class="gradspec-graph" role="img" viewBox="0 0 {total} {height}" width="{total}" '
        f'style="max-width:100%" xmlns="http://www.w3.org/2000/svg"><title class="nohighlight">{escape(title)}</title>'
        f"{''.join(lines + drawn)}</svg>"
    )


def _box(label: str, x: int, y: int, width: int) -> str:
    return (
        f'<rect x="{x - width // 2}" y="{y}" width="{width}" height="{BOX}" rx="4" fill="none" stroke="currentColor"/>'
        f'<text x="{x}" y="{y + BOX * 2 // 3}" text-anchor="middle" font-size="11" font-family="monospace" '
        f'fill="currentColor">{escape(label)}</text>'
    )


def _layers(boxes: Mapping[str, str], arrows: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return the boxes in layers: each is above all that its arrows lead to."""
    targets: dict[str, list[str]] = {name: [] for name in boxes}
    waiting = dict.fromkeys(boxes, 0)
    for source, target in arrows:
        targets[source].append(target)
        waiting[target] += 1
    depth = dict.fromkeys(boxes, 0)
    ready = [name for name, number in waiting.items() if not number]
    for name in ready:  # it grows while it is walked
        for target in targets[name]:
            depth[target] = max(depth[target], depth[name] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    found: list[list[str]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for name, place in depth.items():
        found[place].append(name)
    return found
