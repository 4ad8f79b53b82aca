"""What the docs site adds to the pages under docs/: those at the root of the project, and every decision.

CONTRIBUTING.md, SECURITY.md, CHANGELOG.md and the replies to claims stay where people look for them in a repository and
are pages of the site too. Their links to `docs/page.md` become links to `page.md`, and links of the docs to
`../CONTRIBUTING.md` lead to that page. The index of decisions gets a link to each of them, so that a new one needs no
line anywhere else.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

__all__ = ["on_files", "on_page_markdown"]

ROOT = Path(__file__).parent.parent
REPLIES = "claims/REPLY.md"
ROOT_PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", REPLIES)
DECISIONS = "decisions/index.md"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the project's root; a decision is a page outside of the navigation."""
    for name in ROOT_PAGES:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    for file in files:
        if file.src_uri.startswith("decisions/0") or file.src_uri == REPLIES:
            file.inclusion = InclusionLevel.NOT_IN_NAV
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Make links between the root and docs/ lead to where the pages are in the site."""
    uri = page.file.src_uri
    if uri in ROOT_PAGES:
        return markdown.replace("](docs/", "](").replace("](../docs/", "](../")
    if uri == DECISIONS:
        return f"{markdown}\n{_list_decisions()}"
    up = "../" * uri.count("/")
    names = "|".join(map(re.escape, ROOT_PAGES))
    return re.sub(rf"\]\({re.escape(up)}\.\./({names})", rf"]({up}\1", markdown)


def _list_decisions() -> str:
    """A list item for each decision: its title, linked."""
    lines = []
    for path in sorted((ROOT / "docs/decisions").glob("0*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        lines.append(f"- [{re.sub(r'^[0-9]+[.] ', '', title)}]({path.name})")
    return "\n".join(lines)
