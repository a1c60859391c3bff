# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""An SVG of latency and bandwidth over message size; both axes are logarithmic."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 460, 300             # of one panel's axes
LEFT, TOP, GAP, BELOW = 70, 50, 90, 130
COLOURS = ["#222222", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"]
TITLES = {"latency": "Latency, microseconds", "bandwidth": "Bandwidth, MiB/s"}


def short(value):
    for unit, name in ((1 << 20, "M"), (1 << 10, "K")):
        if value >= unit and value % unit == 0:
            return f"{value // unit}{name}"
    return f"{value:g}"


class Axis:
    """A logarithmic scale from values to places."""

    def __init__(self, values, start, length):
        self.low, self.high = math.log10(min(values)), math.log10(max(values))
        if self.high == self.low:
            self.high += 1
        self._start, self._length = start, length

    def place(self, value):
        return self._start + (math.log10(value) - self.low) / (self.high - self.low) * self._length


def decades(values):
    """Powers of ten around all values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return [10 ** n for n in range(low, max(high, low + 1) + 1)]


def text(x, y, words, anchor="middle", size=11):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'


def line(x1, y1, x2, y2, colour="#dddddd"):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def panel(title, lines, left):
    sizes = sorted({size for points in lines.values() for size, _ in points})
    marks = decades([value for points in lines.values() for _, value in points])
    bottom = TOP + HEIGHT
    across, up = Axis(sizes, left, WIDTH), Axis(marks, bottom, -HEIGHT)
    yield text(left + WIDTH / 2, TOP - 12, title, size=14)
    for mark in marks:
        yield line(left, up.place(mark), left + WIDTH, up.place(mark))
        yield text(left - 6, up.place(mark) + 4, f"{mark:g}", "end")
    for size in sizes:
        yield line(across.place(size), TOP, across.place(size), bottom)
        yield text(across.place(size), bottom + 16, short(size))
    yield text(left + WIDTH / 2, bottom + 34, "message size, octets")
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{across.place(size):.1f},{up.place(value):.1f}" for size, value in points)
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
        for size, value in points:
            yield (f'<circle cx="{across.place(size):.1f}" cy="{up.place(value):.1f}" r="3" fill="{colour}">'
                   f"<title>{escape(name)}, {short(size)}: {value:.2f}</title></circle>")
        x, y = left + (number % 2) * WIDTH / 2, bottom + 58 + number // 2 * 18
        yield line(x, y - 4, x + 22, y - 4, colour)
        yield text(x + 28, y, name, "start")


def svg(curves, caption):
    shown = {name: lines for name, lines in curves.items() if lines}
    width = LEFT + len(shown) * (WIDTH + GAP)
    height = TOP + HEIGHT + BELOW
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">',
             f'<rect width="{width}" height="{height}" fill="#ffffff"/>', text(LEFT, 20, caption, "start")]
    for number, (name, lines) in enumerate(shown.items()):
        parts.extend(panel(TITLES[name], lines, LEFT + number * (WIDTH + GAP)))
    return "\n".join([*parts, "</svg>", ""])
