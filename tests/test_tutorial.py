"""The tutorial, as a reader does it: its files are saved, its commands are run by a shell, its figures come out.

A page stands on the files of the pages before it. Ports that may be taken are replaced by free ones, the paid model
by a server on this machine, and the demo by the output that the first page shows, which test_readme.py compares with
the demo itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from command import environment
from pages import ROOT, Block, blocks, tables
from servers import Server, completion, free_port

pytestmark = pytest.mark.long

PAGES = ["first-result", "own-proxy", "own-data", "reading-numbers"]
ORDER = [f"docs/tutorial/{name}.md" for name in PAGES]


def is_file(block: Block) -> bool:
    return block.language != "sh" and "." in block.title


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the reader works: the environment that `make demo` made, and the files saved so far."""
    (tmp_path / ".venv").symlink_to(sys.prefix)
    first = (ROOT / ORDER[0]).read_text(encoding="utf-8")
    (tmp_path / "demo.txt").write_text(first.partition("<!-- demo:start -->")[2].partition("<!-- demo:end -->")[0])
    for page in ORDER:
        for block in filter(is_file, blocks(page)):
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def stand_ins() -> Iterator[dict[str, str]]:
    """What the page says, and what it is here."""
    with Server(completion("I do not know.")) as server:
        yield {
            "make demo": "cat demo.txt",
            "localhost:7878": f"127.0.0.1:{(proxy := free_port())}",
            " 7878 ": f" {proxy} ",
            ":9100": f":{free_port()}",
            "https://api.openai.com": server.url,
        }


class Reader:
    """Types the blocks of a page into a shell, and keeps what was printed."""

    def __init__(self, folder: Path, stand_ins: dict[str, str]) -> None:
        self._folder, self._stand_ins = folder, stand_ins
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self._environment = environment(PATH=path, OPENAI_API_KEY="sk-of-the-reader", COLUMNS="200")
        self._background: list[subprocess.Popen[bytes]] = []
        self.printed = ""

    def run(self, block: Block) -> None:
        """Run a block in a shell, to its end unless it is what the first terminal is left with."""
        text = block.text
        for said, here in self._stand_ins.items():
            text = text.replace(said, here)
        command = ["bash", "-e", "-c", text if block.title != "first terminal" else f"exec {text}"]
        where = {"cwd": self._folder, "env": self._environment}
        if block.title == "first terminal":
            self._background.append(subprocess.Popen(command, **where))
            wait_for(self._stand_ins["localhost:7878"])
            return
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300, **where)
        wanted = 1 if block.title == "exit code 1" else 0
        assert done.returncode == wanted, f"{text}\n{done.stdout}\n{done.stderr}"
        assert done.stdout.strip() or "--out" in text, text
        self.printed = done.stdout

    def close(self) -> None:
        """End what the first terminal was left with."""
        for process in self._background:
            process.terminate()
            process.wait(20)


def wait_for(address: str) -> None:
    give_up = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(f"http://{address}/", timeout=5)
        except urllib.error.HTTPError:
            return
        except OSError:
            assert time.monotonic() < give_up, f"nobody answers at {address}"
            time.sleep(0.05)


@pytest.fixture
def reader(folder: Path, stand_ins: dict[str, str]) -> Iterator[Reader]:
    reading = Reader(folder, stand_ins)
    yield reading
    reading.close()


@pytest.mark.parametrize("page", ORDER)
def test_every_command_runs_and_prints_what_is_shown(page: str, reader: Reader) -> None:
    for block in blocks(page):
        if block.language == "sh":
            reader.run(block)
        elif block.language == "text":
            check_shown(block.text, reader.printed)


def check_shown(shown: str, printed: str) -> None:
    """Every cell and line that the page shows was printed; the page may leave columns, rows and lines out."""
    known = {next(iter(table[0])): table for table in tables(printed)}
    for rows in tables(shown):
        (title, *_) = rows[0]
        by_name = {row[title]: row for row in known[title]}
        for row in rows:
            for column, cell in row.items():
                words = by_name[row[title]][column].split()  # an interval may stand behind the number
                assert words[: len(cell.split())] == cell.split(), (row, column)
    for line in shown.splitlines():
        assert line.startswith("|") or line in printed, line


def test_a_figure_that_was_not_printed_is_noticed() -> None:
    printed = "| system | n | score |\n| --- | --: | --: |\n| a | 3 | 0.5 |\n\nscore = f1."
    check_shown("| system | score |\n| --- | --- |\n| a | 0.5 |\nscore = f1.", printed)
    for wrong in ("| system | score |\n| --- | --- |\n| a | 0.6 |", "score = f2."):
        with pytest.raises(AssertionError):
            check_shown(wrong, printed)


def test_the_pages_are_a_chain() -> None:
    assert sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/tutorial").glob("*.md")) == sorted(ORDER)
    for page, following in pairwise(ORDER):
        assert f"({Path(following).name})" in (ROOT / page).read_text(encoding="utf-8").splitlines()[-1]
