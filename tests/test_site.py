"""The docs site: it builds without a warning, fetches nothing from elsewhere, and a broken link fails it."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pages import ROOT

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        importlib.util.find_spec("mkdocs") is None or not (ROOT / "mkdocs.yml").exists(),
        reason="the docs site is built where requirements-project.txt is installed: make docs",
    ),
]

SMALL = """
INHERIT: {config}
docs_dir: pages
site_dir: site
hooks: []
plugins: [search]
nav: [index.md]
"""


def build(config: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--config-file", str(config), *more]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=300, env=environment, cwd=config.parent
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", "--site-dir", str(folder))
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if not (site / page).is_file()] == []
    assert (site / "CONTRIBUTING.html").is_file()
    assert (site / "CHANGELOG.html").is_file()


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    fetched = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?((?:https?:)?//[^\" >]+)")
    for path in site.rglob("*.html"):
        assert fetched.findall(path.read_text(encoding="utf-8")) == [], path
    for path in site.rglob("*.css"):
        assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", path.read_text(encoding="utf-8")) == [], path


def test_the_reference_is_made_from_the_docstrings(site: Path) -> None:
    page = (site / "api/index.html").read_text(encoding="utf-8")
    assert 'id="context_bench.evaluate"' in page
    assert "Run every system on every example" in page
    assert "max_examples" in page


def test_each_decision_is_linked(site: Path) -> None:
    page = (site / "decisions/index.html").read_text(encoding="utf-8")
    for path in (ROOT / "docs/decisions").glob("0*.md"):
        assert f'href="{path.stem}.html"' in page, path.name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[gone](gone.md)", "gone.md"),
        ("[gone](#gone)", "#gone"),
        ("[whole](/whole.md)", "/whole.md"),
        ("fine", None),
    ],
)
def test_a_broken_link_fails_the_build(tmp_path: Path, text: str, said: str | None) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/index.md").write_text(f"# A page\n\n{text}\n")
    (tmp_path / "mkdocs.yml").write_text(SMALL.format(config=ROOT / "mkdocs.yml"))
    done = build(tmp_path / "mkdocs.yml")
    assert (done.returncode == 0) == (said is None), done.stderr
    assert said is None or said in done.stderr


def test_a_page_that_is_nowhere_in_the_navigation_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    for name in ("index.md", "lost.md"):
        (tmp_path / "pages" / name).write_text("# A page\n")
    (tmp_path / "mkdocs.yml").write_text(SMALL.format(config=ROOT / "mkdocs.yml"))
    done = build(tmp_path / "mkdocs.yml")
    assert done.returncode != 0
    assert "lost.md" in done.stderr
