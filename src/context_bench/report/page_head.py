"""The head of a page: its style, its script, and the policy that allows these two, by their hashes, and no other."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from context_bench._version import __version__
from context_bench.report.elements import Markup, element

__all__ = ["banner", "page_head", "page_script", "write_policy"]


@cache
def _read_asset(name: str) -> str:
    return files("context_bench.report").joinpath("assets").joinpath(name).read_text(encoding="utf-8").strip()


@cache
def _join_scripts(*names: str) -> str:
    parts = "\n\n".join(_read_asset(f"{name}.js") for name in names)
    return f'"use strict";\n(() => {{\n{parts}\n}})();'


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii") + "'"


def write_policy(*scripts: str, served: bool = False) -> str:
    """Write the content policy of a page with these parts of the script.

    A page that is served may ask its own server, and nobody else; one in a file may ask nobody.
    """
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hash(_join_scripts(*scripts))}",
            f"style-src {_hash(_read_asset('page.css'))}",
            *(["connect-src 'self'", "frame-ancestors 'none'"] if served else []),
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )


def page_head(title: str, policy: str | None) -> Markup:
    """Make the head; without a `policy`, the server sends it."""
    policies = [] if policy is None else [element("meta", {"http-equiv": "Content-Security-Policy", "content": policy})]
    return element(
        "head",
        None,
        element("meta", {"charset": "utf-8"}),
        *policies,
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "referrer", "content": "no-referrer"}),
        element("meta", {"name": "color-scheme", "content": "light dark"}),
        element("meta", {"name": "generator", "content": f"context-bench {__version__}"}),
        element("title", None, title),
        element("style", None, Markup(_read_asset("page.css"))),
    )


def page_script(*scripts: str) -> Markup:
    """Make the script of a page of its parts."""
    return element("script", None, Markup(_join_scripts(*scripts)))


def banner(links: dict[str, str], home: str | None = None) -> Markup:
    """Make the line at the top: links to the parts of the page, and the switch of the theme."""
    brand = element("a", {"href": home, "class": "brand"}, "context-bench") if home else None
    shown = [element("a", {"href": address}, text) for address, text in links.items()]
    return element(
        "header",
        {"class": "banner"},
        brand or element("span", {"class": "brand"}, "context-bench"),
        element("nav", {"aria-label": "Parts"}, *shown),
        element("button", {"type": "button", "id": "theme", "aria-label": "Switch between light and dark"}, "◐"),
    )
