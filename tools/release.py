"""Set the version of a release: in the package, in CITATION.cff, and as a dated section of the changelog.

python tools/release.py 0.2.0            today's date
python tools/release.py 0.2.0 2026-11-20 another date
python tools/release.py --check 0.2.0    change nothing; fail unless everything names this version
"""

from __future__ import annotations

import datetime
import re
import sys
from pathlib import Path

__all__ = ["ReleaseError", "check", "prepare"]

ROOT = Path(__file__).parent.parent
_VERSION = re.compile(r'__version__ = "([^"]+)"')


class ReleaseError(Exception):
    """The version cannot be released as things are."""


def prepare(root: Path, version: str, date: str) -> None:
    """Write the version and the date where they belong.

    Raises:
        ReleaseError: The version is not newer, the date is not a date, or nothing is listed under Unreleased.
    """
    now = _read_version(root)
    if _parse(version) <= _parse(now):
        raise ReleaseError(f"the version must be newer than {now} (got {version})")
    try:
        datetime.date.fromisoformat(date)
    except ValueError:
        raise ReleaseError(f"the date must be like 2026-11-20 (got {date})") from None
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    head, heading, rest = changelog.partition("## Unreleased\n")
    listed = re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    if not heading or "\n- " not in listed:
        raise ReleaseError("CHANGELOG.md must list what changed under '## Unreleased'")
    _write(root, "CHANGELOG.md", f"{head}{heading}\n## {version} - {date}\n{rest}")
    package = root / "src/context_bench/_version.py"
    _write(
        root, "src/context_bench/_version.py", _VERSION.sub(f'__version__ = "{version}"', package.read_text("utf-8"))
    )
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    citation = re.sub(r"^date-released: .*\n", "", citation, flags=re.MULTILINE)
    citation = re.sub(r"^version: .*$", f"version: {version}\ndate-released: {date}", citation, flags=re.MULTILINE)
    _write(root, "CITATION.cff", citation)


def check(root: Path, version: str) -> None:
    """Compare every place that names the version.

    Raises:
        ReleaseError: One of them names another one.
    """
    found = _read_version(root)
    if found != version:
        raise ReleaseError(f"_version.py must say {version} (it says {found})")
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    if f"\nversion: {version}\n" not in citation:
        raise ReleaseError(f"CITATION.cff must say 'version: {version}'")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        raise ReleaseError(f"CHANGELOG.md must have a section '## {version} - DATE'")


def _read_version(root: Path) -> str:
    found = _VERSION.search((root / "src/context_bench/_version.py").read_text(encoding="utf-8"))
    if found is None:
        raise ReleaseError('_version.py must have a line __version__ = "..."')
    return found[1]


def _parse(version: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ReleaseError(f"a version must be like 0.2.0 (got {version})")
    return tuple(map(int, version.split(".")))


def _write(root: Path, name: str, text: str) -> None:
    (root / name).write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Do what the module's docstring says."""
    try:
        match arguments:
            case ["--check", version]:
                check(ROOT, version)
            case [version] if not version.startswith("-"):
                prepare(ROOT, version, datetime.date.today().isoformat())
            case [version, date]:
                prepare(ROOT, version, date)
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
