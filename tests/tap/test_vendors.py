"""Recipes: what is started for a vendor, where its program is looked for."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from context_bench.errors import UnknownName, UsageError
from context_bench.processes import started_proxy
from context_bench.tap.vendors import VENDORS, recipe


def install(home: Path, name: str) -> Path:
    program = home / name / "bin" / name
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with no vendor in reach, and a package that is not in a checkout."""
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "site-packages" / "context_bench" / "processes" / "started_proxy.py"
    monkeypatch.setattr(started_proxy, "__file__", str(place))
    monkeypatch.delenv("CONTEXT_BENCH_VENDORS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "kompact" / "bin"))
    return tmp_path


def test_an_unknown_vendor_is_told_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="unknown vendor 'zip': choose from headroom, kompact"):
        recipe("zip")


@pytest.mark.parametrize(("name", "package"), [("kompact", "kompact"), ("headroom", "headroom-ai[proxy]")])
def test_a_vendor_that_is_not_installed_says_how_to_install_it(nowhere: Path, name: str, package: str) -> None:
    with pytest.raises(UsageError) as error:
        recipe(name)
    assert f"{name} is not installed: run `make vendors`" in str(error.value)
    assert "elsewhere, set CONTEXT_BENCH_VENDORS to its .vendors directory" in str(error.value)
    assert f"`pip install '{package}'`" in str(error.value)


def test_the_users_own_place_comes_first_then_the_checkout_then_the_path(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def program() -> str:
        return shlex.split(recipe("kompact").command)[0]

    on_path = install(nowhere / "path", "kompact")
    assert program() == str(on_path)
    in_checkout = install(nowhere / ".vendors", "kompact")
    assert program() == str(in_checkout)
    own = install(nowhere / "my own", "kompact")
    monkeypatch.setenv("CONTEXT_BENCH_VENDORS", str(nowhere / "my own"))
    assert program() == str(own)


def checkout(home: Path) -> Path:
    (home / "tools" / "vendors").mkdir(parents=True)
    (home / "pyproject.toml").touch()
    return home


def test_a_vendor_of_a_checkout_is_found_from_any_directory_in_it(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = install(checkout(nowhere / "repo") / ".vendors", "kompact")
    deep = nowhere / "repo" / "docs" / "decisions"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert shlex.split(recipe("kompact").command)[0] == str(program)


def test_a_vendor_of_the_checkout_that_the_package_runs_from_is_found_from_anywhere(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = install(checkout(nowhere / "repo") / ".vendors", "kompact")
    source = nowhere / "repo" / "src" / "context_bench" / "processes" / "started_proxy.py"
    monkeypatch.setattr(started_proxy, "__file__", str(source))
    assert shlex.split(recipe("kompact").command)[0] == str(program)


def test_a_directory_above_that_is_not_a_checkout_is_not_searched(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(nowhere / ".vendors", "kompact")
    (nowhere / "below").mkdir()
    monkeypatch.chdir(nowhere / "below")
    with pytest.raises(UsageError, match="kompact is not installed"):
        recipe("kompact")


def test_headers_of_a_recipe_are_part_of_what_identifies_it(nowhere: Path) -> None:
    install(nowhere / ".vendors", "kompact")
    found = recipe("kompact")
    assert dict(found.headers) == {"X-Kompact-Disable": "none"}
    assert found.known_as.endswith(" --no-otel, X-Kompact-Disable: none")


def test_what_a_run_records_of_a_vendor(nowhere: Path) -> None:
    program = install(nowhere / ".vendors", "kompact")
    (program.parent.parent / "lib" / "python3.12" / "site-packages" / "kompact-0.4.0.dist-info").mkdir(parents=True)
    assert recipe("kompact").describe() == {
        "name": "kompact",
        "package": "kompact",
        "version": "0.4.0",
        "command": "kompact proxy --host {host} --port {port} "
        "--openai-base-url {tap} --anthropic-base-url {tap} --no-otel",
        "headers": {"X-Kompact-Disable": "none"},
    }


@pytest.mark.parametrize("name", VENDORS)
def test_every_recipe_listens_where_told_and_sends_both_dialects_to_the_tap(nowhere: Path, name: str) -> None:
    install(nowhere / ".vendors", name)
    words = shlex.split(recipe(name).command)
    assert words[words.index("--host") + 1] == "{host}"
    assert words[words.index("--port") + 1] == "{port}"
    upstream = [words[place + 1] for place, word in enumerate(words) if word.endswith(("-base-url", "-api-url"))]
    assert upstream == ["{tap}", "{tap}"]
    assert recipe(name).paths == ("/v1/chat/completions", "/v1/messages")
    assert recipe(name).env["DO_NOT_TRACK"] == "1"


def test_telemetry_is_off(nowhere: Path) -> None:
    install(nowhere / ".vendors", "kompact")
    install(nowhere / ".vendors", "headroom")
    assert recipe("kompact").command.endswith(" --no-otel")
    assert " --no-telemetry " in recipe("headroom").command
    env = recipe("headroom").env
    assert (env["HEADROOM_BEACON"], env["HEADROOM_TELEMETRY"], env["ORT_DISABLE_TELEMETRY"]) == ("off", "off", "1")
    assert (env["HEADROOM_OFFLINE"], env["HF_HUB_OFFLINE"], env["TRANSFORMERS_OFFLINE"]) == ("1", "1", "1")


def test_the_version_and_the_tokenizer_files_are_those_beside_the_program(nowhere: Path) -> None:
    program = install(nowhere / ".vendors", "headroom")
    assert recipe("headroom").version is None
    packages = program.parent.parent / "lib" / "python3.12" / "site-packages"
    tokenizers = packages / "litellm" / "litellm_core_utils" / "tokenizers"
    tokenizers.mkdir(parents=True)
    (packages / "headroom_ai-0.42.0.dist-info").mkdir()
    found = recipe("headroom")
    assert (found.version, found.env["TIKTOKEN_CACHE_DIR"]) == ("0.42.0", str(tokenizers))
    assert found.known_as.startswith("headroom-ai 0.42.0: proxy --host {host} --port {port} ")
