"""Check built packages as a user would get them: python tools/check_dist.py dist

There is one wheel and one source archive, both named after the version of the package; the wheel holds the package, its
data and nothing else; the archive holds what a builder and a tester need; and the wheel, installed into an empty
environment, runs the demo.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

__all__ = ["find_faults"]

ROOT = Path(__file__).parent.parent
IN_WHEEL = (
    "context_bench/py.typed",
    "context_bench/cli/__init__.py",
    "context_bench/datasets/cards/",
    "context_bench/output/page/assets/",
    "context_bench/output/plots/assets/",
)
IN_ARCHIVE = (
    "src/context_bench/__init__.py",
    "tests/conftest.py",
    "docs/index.md",
    "mkdocs.yml",
    "LICENSE",
    "Makefile",
)


def find_faults(folder: Path) -> list[str]:
    """List what is wrong with the packages in a folder, one sentence each."""
    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/context_bench/_version.py").read_text(encoding="utf-8"))
    assert version is not None
    names = sorted(path.name for path in folder.iterdir())
    wanted = [f"ctxbench-{version[1]}-py3-none-any.whl", f"ctxbench-{version[1]}.tar.gz"]
    if names != wanted:
        return [f"{folder} must hold {wanted[0]} and {wanted[1]} alone (it holds {', '.join(names) or 'nothing'})"]
    return [*_check_wheel(folder / wanted[0], version[1]), *_check_archive(folder / wanted[1])]


def _check_wheel(path: Path, version: str) -> list[str]:
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        metadata = wheel.read(f"ctxbench-{version}.dist-info/METADATA").decode()
    faults = [f"the wheel lacks {part}" for part in IN_WHEEL if not any(name.startswith(part) for name in names)]
    homes = {name.partition("/")[0] for name in names}
    faults += [
        f"the wheel must not have {home}" for home in sorted(homes - {"context_bench", f"ctxbench-{version}.dist-info"})
    ]
    faults += [
        f"the metadata lacks {line!r}" for line in ("Name: ctxbench", f"Version: {version}") if line not in metadata
    ]
    return faults


def _check_archive(path: Path) -> list[str]:
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    return [f"the source archive lacks {part}" for part in IN_ARCHIVE if part not in names]


def run_demo(wheel: Path) -> None:
    """Install the wheel into an empty environment and run the demo there."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / "bin"
        pip = [str(programs / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), str(wheel)], check=True)
        subprocess.run([str(programs / "context-bench"), "demo"], check=True, cwd=folder, stdout=subprocess.DEVNULL)


def main(arguments: list[str]) -> int:
    """Print each fault; succeed when there is none."""
    (folder,) = map(Path, arguments)
    faults = find_faults(folder)
    for fault in faults:
        print(f"check_dist: {fault}", file=sys.stderr)
    if not faults:
        run_demo(next(folder.glob("*.whl")))
        print("the packages are as they should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
