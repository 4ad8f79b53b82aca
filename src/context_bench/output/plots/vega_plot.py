"""A plot: a Vega-Lite spec that notebooks show and that is saved as SVG, PNG or JSON.

The spec is plain data and needs nothing. Pictures are rendered by vl-convert, with no browser and no network.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from context_bench.errors import MissingExtra, UsageError

__all__ = ["Plot", "is_renderer_installed"]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_VERSION = "5.20"
_MIME = "application/vnd.vegalite.v5+json"
_SCALE = 2.0
"""Pixels of a PNG for each of the plot: sharp in a paper and on a dense screen."""
_CONFIG: dict[str, Any] = {
    "background": "white",
    "font": "Helvetica, Arial, Liberation Sans, sans-serif",
    "padding": 12,
    "view": {"stroke": None},
    "axis": {
        "domainColor": "#888888",
        "gridColor": "#e6e6e6",
        "labelColor": "#333333",
        "labelFontSize": 11,
        "tickColor": "#888888",
        "tickSize": 4,
        "titleColor": "#333333",
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    },
    "header": {"labelColor": "#222222", "labelFontSize": 12, "labelFontWeight": "bold", "title": None},
    "text": {"color": "#333333", "fontSize": 11},
    "title": {
        "anchor": "start",
        "color": "#111111",
        "fontSize": 15,
        "fontWeight": "bold",
        "offset": 14,
        "subtitleColor": "#555555",
        "subtitleFontSize": 11.5,
        "subtitleLineHeight": 15,
        "subtitlePadding": 5,
    },
}


class Plot:
    """One picture of a result.

    Attributes:
        name: What it is called in file names, such as `pareto`.
        spec: Its Vega-Lite spec, which other tools of that world take too: `altair.Chart.from_dict(plot.spec)`.
    """

    def __init__(self, name: str, spec: Mapping[str, Any]) -> None:
        self.name = name
        self.spec: dict[str, Any] = {"$schema": _SCHEMA, "config": _CONFIG, **spec}

    @property
    def title(self) -> str:
        """The sentence above the picture."""
        return str(self.spec["title"]["text"])

    def __repr__(self) -> str:
        return f"Plot({self.name}: {self.title})"

    def to_svg(self) -> str:
        """Render it as SVG (needs extra `plots`)."""
        return str(self._render("vegalite_to_svg")) + "\n"

    def to_png(self, scale: float = _SCALE) -> bytes:
        """Render it as PNG, with so many pixels for each of the plot (needs extra `plots`)."""
        return bytes(self._render("vegalite_to_png", scale=scale))

    def _render(self, how: str, **options: Any) -> Any:
        renderer = _load_renderer()
        try:
            # Nothing is fetched: the data are in the spec.
            return getattr(renderer, how)(self.spec, vl_version=_VERSION, allowed_base_urls=[], **options)
        except ValueError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise UsageError(f"the plot {self.name} cannot be rendered: {' '.join(lines[:2])}") from error

    def save(self, path: str | Path) -> Path:
        """Write it to a file, in the form that the ending names: .svg, .png, or .json for the spec."""
        path = Path(path)
        ending = path.suffix.lower()
        if ending not in _WRITERS:
            raise UsageError(f"a plot must be saved as .svg, .png or .json (got {path.name!r})")
        data = _WRITERS[ending](self)
        try:
            path.write_bytes(data)
        except OSError as error:
            raise UsageError(f"cannot write the plot to {path}: {error.strerror or error}") from error
        return path

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:  # noqa: ARG002
        """Give what a notebook shows: the spec, and SVG for those that do not know Vega-Lite."""
        bundle: dict[str, Any] = {_MIME: self.spec, "text/plain": repr(self)}
        if is_renderer_installed():
            bundle["image/svg+xml"] = self.to_svg()
        return bundle


def _write_spec(plot: Plot) -> bytes:
    return (json.dumps(plot.spec, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


_WRITERS: dict[str, Callable[[Plot], bytes]] = {
    ".svg": lambda plot: plot.to_svg().encode(),
    ".png": Plot.to_png,
    ".json": _write_spec,
}


def is_renderer_installed() -> bool:
    """Whether pictures can be rendered."""
    try:
        _load_renderer()
    except MissingExtra:
        return False
    return True


def _load_renderer() -> Any:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtra("a picture of a plot", "plots") from error
    return vl_convert
