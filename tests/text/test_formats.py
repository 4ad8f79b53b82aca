"""A small packed file may hold a record of gigabytes: it is refused while it is unpacked."""

from __future__ import annotations

import io
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from context_bench.errors import DataError
from context_bench.text import formats
from context_bench.text.formats import FORMATS

READ = """
import sys
from pathlib import Path
from context_bench.text.formats import FORMATS
from context_bench.datasets.public.raw_files import RawFile
from context_bench.errors import DataError
file = RawFile(Path(sys.argv[1]))
try:
    with file.open() as source:
        for _ in FORMATS[file.suffix](source, str(file)):
            pass
    print("read")
except DataError as error:
    print(error)
for each in open("/proc/self/status"):  # ru_maxrss would count what the process that started this one had
    if each.startswith("VmHWM"):
        print(int(each.split()[1]) // 1024)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in other units")
@pytest.mark.parametrize(
    ("suffix", "start", "line"),
    [
        (".jsonl", b'{"id": 1, "context": "', 1),
        (".json", b'[{"id": 1, "context": "', 1),
        (".csv", b"id,context\n1,", 2),
    ],
)
def test_one_line_of_200_megabytes_is_refused_in_one_sentence(
    tmp_path: Path, suffix: str, start: bytes, line: int
) -> None:
    packer = zlib.compressobj(level=1, wbits=31)
    parts = [packer.compress(start), *(packer.compress(b"x" * (1 << 20)) for _ in range(200)), packer.flush()]
    path = tmp_path / f"data{suffix}.gz"
    path.write_bytes(b"".join(parts))
    assert path.stat().st_size < 4_000_000
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=False)
    said, peak = done.stdout.splitlines()
    assert said == f"{path}, line {line}: a record is longer than 128 MB; split it into smaller ones"
    assert int(peak) < 900


@pytest.mark.parametrize(
    ("suffix", "record"),
    [
        (".jsonl", b'{"id": 1, "context": "%s"}\n'),
        (".json", b'[{"id": 1, "context": "%s"}]'),
        (".csv", b'id,context\n1,"%s"\n'),
    ],
)
def test_records_up_to_the_limit_are_read(monkeypatch: pytest.MonkeyPatch, suffix: str, record: bytes) -> None:
    monkeypatch.setattr(formats, "MAX_RECORD", 100_000)
    monkeypatch.setattr(formats, "JSON_CHUNK_CHARS", 1_000)
    ((_, read),) = FORMATS[suffix](io.BytesIO(record % (b"x" * 90_000)), "data")
    assert len(read["context"]) == 90_000
    with pytest.raises(DataError, match=r"^data, line"):
        list(FORMATS[suffix](io.BytesIO(record % (b"x" * 900_000)), "data"))


def test_a_csv_field_of_many_lines_is_limited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "MAX_RECORD", 100_000)
    with pytest.raises(DataError, match=r"^data, line .*field"):
        list(FORMATS[".csv"](io.BytesIO(b'id,context\n1,"' + b"x" * 999 + b"\n" * 300_000 + b'"\n'), "data"))
