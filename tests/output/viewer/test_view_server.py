"""The server of the viewer over real HTTP: whom it answers, whom it refuses, and what it says of a store in trouble."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from context_bench import evaluate
from context_bench.errors import StoreError, UsageError
from context_bench.output.viewer import ViewServer, view_server
from context_bench.store import Store


def _drop_half(example: dict[str, Any]) -> str:
    """Keep the first half of a context; fail on the example that says so."""
    if example["id"] == "e7":
        raise TimeoutError("no answer")
    return str(example["context"])[: len(example["context"]) // 2]


def keep(example: dict[str, Any]) -> str:
    return str(example["context"])


def _make_examples(count: int) -> list[dict[str, Any]]:
    """Examples whose evidence is in the first half (even ones) or the second."""
    made = []
    for number in range(count):
        code = f"the code is {number}"
        context = f"{code}\n{'filler ' * 20}" if number % 2 == 0 else f"{'filler ' * 20}\n{code}"
        made.append({"id": f"e{number}", "context": context, "question": f"Which CODE, {number}?"})
        made[-1] |= {"answer": str(number), "evidence": [code], "dataset": "odd" if number % 2 else "even"}
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one run: 20 examples, two systems; `drop_half` loses the 10 odd ones, one of them by an error."""
    folder = tmp_path_factory.mktemp("store")
    _drop_half.__name__ = "drop_half"
    evaluate(
        [keep, _drop_half],
        _make_examples(20),
        cache_dir=str(folder),
        progress=False,
        evaluators=["evidence-survival"],
        score_field="evidence_survived",
        baseline="keep",
    )
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ViewServer]:
    with ViewServer(folder) as server:
        yield server


class Reply:
    """What came back."""

    def __init__(self, server: ViewServer, path: str, method: str = "GET", **headers: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.putrequest(method, path, skip_host="Host" in given)
            for name, value in given.items():
                connection.putheader(name, value)
            connection.endheaders()
            reply = connection.getresponse()
            self.status, self.headers, self.text = reply.status, reply.headers, reply.read().decode()
        finally:
            connection.close()

    @property
    def json(self) -> Any:
        return json.loads(self.text)


def ask(server: ViewServer, what: str, **values: Any) -> Any:
    reply = Reply(server, f"/{server.token}/api/{what}?{urlencode(values)}")
    assert reply.status == 200, reply.text
    return reply.json


def find_run(server: ViewServer) -> str:
    """The newest run, once all of its rows are read."""
    run = str(ask(server, "runs")["runs"][0]["id"])
    give_up = time.monotonic() + 60
    while ask(server, "state", runs=run)["under_way"]:
        assert time.monotonic() < give_up
        time.sleep(0.05)
    return run


# --- whom it answers


def test_it_answers_whoever_has_the_token(server: ViewServer) -> None:
    for host in ("127.0.0.1", "localhost", "[::1]", "LOCALHOST"):
        reply = Reply(server, f"/{server.token}/", Host=f"{host}:{server.port}")
        assert reply.status == 200
        assert "<h1>Runs</h1>" in reply.text


@pytest.mark.parametrize(
    "path", ["/", "", "/api/runs", "/x/api/runs", "//", "/{token}", "/{token}x/", "/{half}/", "/%00/"]
)
def test_a_wrong_or_missing_token_is_refused(server: ViewServer, path: str) -> None:
    path = path.format(token=server.token, half=server.token[:16])
    reply = Reply(server, path or "*")
    assert reply.status in ((403,) if path else (400, 403))
    assert "<h1>" not in reply.text


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost", "127.0.0.1:1", "127.0.0.1.nip.io:{port}", ""],
)
def test_another_name_is_refused(server: ViewServer, host: str) -> None:
    reply = Reply(server, f"/{server.token}/", Host=host.format(port=server.port))
    assert reply.status == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"])
def test_another_origin_is_refused(server: ViewServer, origin: str) -> None:
    reply = Reply(server, f"/{server.token}/api/runs", Origin=origin.format(port=server.port))
    assert reply.status == 403
    assert reply.headers["Access-Control-Allow-Origin"] is None


def test_its_own_origin_is_answered_and_still_no_header_shares_it(server: ViewServer) -> None:
    reply = Reply(server, f"/{server.token}/api/runs", Origin=f"http://127.0.0.1:{server.port}")
    assert reply.status == 200
    assert not [name for name in reply.headers if name.lower().startswith("access-control")]


def test_what_another_site_embeds_is_refused(server: ViewServer) -> None:
    embedded = {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "no-cors"}
    assert Reply(server, f"/{server.token}/api/runs", **embedded).status == 403
    followed = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert Reply(server, f"/{server.token}/", **followed).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(server: ViewServer, method: str) -> None:
    reply = Reply(server, f"/{server.token}/api/runs", method)
    assert (reply.status, reply.headers["Allow"]) == (405, "GET, HEAD")


def test_head_is_get_without_the_content(server: ViewServer) -> None:
    whole, head = Reply(server, f"/{server.token}/"), Reply(server, f"/{server.token}/", "HEAD")
    assert head.text == ""
    assert head.headers["Content-Length"] == whole.headers["Content-Length"] == str(len(whole.text.encode()))


@pytest.mark.parametrize("path", ["", "api/runs", "nothing"])
def test_every_reply_has_its_policy(server: ViewServer, path: str) -> None:
    reply = Reply(server, f"/{server.token}/{path}")
    policy = reply.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["Referrer-Policy"] == "no-referrer"
    assert reply.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert reply.headers["Set-Cookie"] is None


def test_every_server_has_a_token_of_its_own(server: ViewServer, folder: Path) -> None:
    with ViewServer(folder) as other:
        assert len(other.token) >= 32
        assert other.token != server.token


def test_a_port_that_is_taken_is_one_sentence(server: ViewServer, folder: Path) -> None:
    with pytest.raises(UsageError, match=f"^port {server.port} is not available: another program uses it"):
        ViewServer(folder, server.port)


# --- what it answers


def test_the_list_of_runs(server: ViewServer) -> None:
    (run,) = ask(server, "runs")["runs"]
    assert (run["status"], run["rows"], run["systems"]) == ("done", 40, ["keep", "drop_half"])
    assert run["best"] == 1.0
    assert (run["saved"], run["verdict"]) == (None, "1 worse")
    assert run["brief"]["systems"] == "keep, drop_half"
    assert sorted(run["datasets"]) == ["even", "odd"]


def test_rows_are_filtered_sorted_and_searched(server: ViewServer) -> None:
    run = find_run(server)
    names = ask(server, "state", runs=run)["names"]
    number = {kind: {name: int(key) for key, name in names[kind].items()} for kind in ("system", "dataset", "error")}

    def find(**values: Any) -> tuple[int, list[str]]:
        found = ask(server, "rows", runs=run, limit=200, **values)
        assert found["total"] == 40
        return found["found"], [row["name"] for row in found["rows"]]

    half = number["system"]["drop_half"]
    assert find()[0] == 40
    assert find(system=half)[0] == 20
    assert find(system=half, dataset=number["dataset"]["odd"])[0] == 10
    assert find(outcome=0)[0] == 30  # right: all of keep, the even ones of drop_half
    assert find(outcome=1)[0] == 9
    assert find(outcome=2) == (1, ["e7"])
    assert find(error=number["error"]["TimeoutError"]) == (1, ["e7"])
    assert find(evidence=0)[0] == 9
    assert find(evidence=2)[0] == 30
    assert find(evidence="null")[0] == 1
    assert find(flip=-1)[0] == 10
    assert find(flip=1)[0] == 0
    assert find(low=0.5)[0] == 30
    assert find(high=0.5)[0] == 9
    assert find(words="code e1")[0] == 22  # e1 and e10 to e19, twice; each has "CODE" in its question
    assert find(words="timeout") == (1, ["e7"])
    assert find(words="100%")[0] == 0
    assert find(system=half, sort="id")[1][:3] == ["e0", "e1", "e2"]
    assert find(system=half, sort="id", down=1)[1][:3] == ["e19", "e18", "e17"]
    assert find(system=half, sort="score")[1][-1] == "e7", "what was not measured comes last"
    assert find(system=half, sort="score", down=1)[1][-1] == "e7"


def test_rows_come_page_by_page(server: ViewServer) -> None:
    run = find_run(server)
    pages = [ask(server, "rows", runs=run, offset=offset, limit=15)["rows"] for offset in (0, 15, 30, 45)]
    assert [len(page) for page in pages] == [15, 15, 10, 0]
    assert len({row["key"] for page in pages for row in page}) == 40
    assert len(ask(server, "rows", runs=run, limit=100_000)["rows"]) == 40


def test_a_row_has_its_context_gold_and_evidence(server: ViewServer) -> None:
    run = find_run(server)
    found = ask(server, "locate", runs=run, run=run, system="drop_half", dataset="odd", name="e3", repeat=0)
    row = ask(server, "row", runs=run, id=found["row"]["key"])
    assert row["gold"] == ["3"]
    ((_, pieces),) = row["context"]
    assert ["d", "the code is 3", 1] in pieces
    listed = ask(server, "rows", runs=run, offset=found["place"], limit=1)["rows"]
    assert listed == [found["row"]]


def test_a_link_to_nothing_finds_nothing(server: ViewServer) -> None:
    run = find_run(server)
    assert ask(server, "locate", runs=run, run=run, system="x", dataset="odd", name="e3", repeat=0) == {"row": None}
    assert ask(server, "locate", runs=run, run="x", system="keep", dataset="odd", name="e3", repeat=0) == {"row": None}


def test_the_page_of_a_run_is_that_of_the_report(server: ViewServer) -> None:
    run = find_run(server)
    page = Reply(server, f"/{server.token}/run/{quote(run)}").text
    for part in ("headline", "pareto", "datasets", "times", "errors", "method"):
        assert f'<section id="{part}"' in page
    assert "<summary>Not measured (" in page
    assert "Worse: drop_half." in page
    sections = ask(server, "sections", runs=run)["parts"]
    assert [part[1]["id"] for part in sections] == ["run"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("run/none", 404),
        ("api/rows?runs=none", 404),
        ("api/rows?runs=", 404),
        ("api/rows?runs={run}&sort=body", 404),
        ("api/rows?runs={run}&offset=-1", 404),
        ("api/rows?runs={run}&system=1%20OR%201", 404),
        ("api/rows?runs={run}&low=nan", 404),
        ("api/row?runs={run}&id=99999999999999999999999", 404),
        ("api/row?runs={run}&id=4294967295", 404),
        ("api/row?runs={run}&id=1", 404),
        ("api/none", 404),
        ("api/rows?" + "&".join(["a=1"] * 60), 400),
        ("../../etc/passwd", 404),
    ],
)
def test_a_bad_request_gets_a_sentence(server: ViewServer, path: str, status: int) -> None:
    reply = Reply(server, f"/{server.token}/{path.format(run=find_run(server))}")
    assert reply.status == status
    assert "Traceback" not in reply.text
    if path.startswith("api"):
        assert len(reply.json["error"]) > 10


def test_two_runs_stand_side_by_side(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "two")
    evaluate([keep], _make_examples(4), cache_dir=str(tmp_path / "two"), progress=False)
    with ViewServer(tmp_path / "two") as server:
        runs = [run["id"] for run in ask(server, "runs")["runs"]]
        both = "+".join(runs)
        page = Reply(server, f"/{server.token}/run/{both}").text
        assert '<section id="side"' in page
        assert page.count("<article") == 2
        give_up = time.monotonic() + 60
        while ask(server, "state", runs=both)["under_way"]:
            assert time.monotonic() < give_up
            time.sleep(0.05)
        assert ask(server, "rows", runs=both)["found"] == 44
        assert ask(server, "rows", runs=runs[0])["found"] == 4
        assert set(ask(server, "state", runs=runs[0])["names"]["system"].values()) == {"keep"}


def test_a_run_of_a_tap_without_rows_is_shown(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        run = store.start_run({"kind": "tap", "systems": [], "datasets": {}, "metrics": [], "score_field": "score"})
    with ViewServer(tmp_path) as server:
        reply = Reply(server, f"/{server.token}/run/{run.id}")
        assert reply.status == 200, reply.text
        assert "did not finish" in reply.text
        assert ask(server, "runs")["runs"][0]["status"] == "interrupted"
        assert ask(server, "rows", runs=find_run(server)) == {"rows": [], "found": 0, "total": 0, "reading": ""}


def test_a_record_that_cannot_be_shown_is_one_sentence(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        run = store.start_run({"systems": 7, "datasets": {}, "metrics": [], "score_field": "score"})
    with ViewServer(tmp_path) as server:
        reply = Reply(server, f"/{server.token}/run/{run.id}")
        assert reply.status == 500
        assert "this cannot be shown: TypeError" in reply.text
        assert "Traceback" not in reply.text


# --- a store in trouble


def test_no_store_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store in "):
        ViewServer(tmp_path)


def test_a_damaged_store_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"SQLite format 3\0" + b"damaged" * 1000)
    with pytest.raises(StoreError, match="is damaged"):
        ViewServer(tmp_path)


def test_a_store_that_vanishes_is_said_and_one_that_comes_back_is_shown(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "store")
    with ViewServer(tmp_path / "store") as server:
        run = find_run(server)
        (tmp_path / "store").rename(tmp_path / "away")
        reply = Reply(server, f"/{server.token}/api/rows?runs={run}")
        assert reply.status == 503
        assert "no longer exists" in reply.json["error"]
        assert Reply(server, f"/{server.token}/run/{run}").status == 503
        (tmp_path / "away").rename(tmp_path / "store")
        assert ask(server, "rows", runs=run)["found"] == 40


def test_a_store_in_place_of_another_is_read_anew(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "store")
    with ViewServer(tmp_path / "store") as server:
        find_run(server)
        (tmp_path / "store" / "store.db").unlink()
        for more in (tmp_path / "store").glob("store.db-*"):
            more.unlink()
        evaluate([keep], _make_examples(3), cache_dir=str(tmp_path / "store"), progress=False)
        give_up = time.monotonic() + 60
        while ask(server, "runs")["runs"][0]["rows"] != 3:
            assert time.monotonic() < give_up
            time.sleep(0.05)
        assert ask(server, "rows", runs=find_run(server))["found"] == 3


def test_a_locked_store_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "store")
    path = tmp_path / "store" / "store.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    with ViewServer(tmp_path / "store") as server:
        run = find_run(server)
        writer = sqlite3.connect(path, isolation_level=None)
        writer.execute("BEGIN EXCLUSIVE")
        try:
            reply = Reply(server, f"/{server.token}/api/row?runs={run}&id={1 << 32}")
            assert reply.status == 503
            assert "was locked by another program" in reply.json["error"]
        finally:
            writer.close()


def test_nothing_is_written_to_the_store(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "store")
    before = (tmp_path / "store" / "store.db").read_bytes()
    with ViewServer(tmp_path / "store") as server:
        run = find_run(server)
        Reply(server, f"/{server.token}/run/{run}")
    assert (tmp_path / "store" / "store.db").read_bytes() == before


# --- a run that is under way


def test_rows_of_a_run_under_way_are_shown_as_they_come(tmp_path: Path) -> None:
    """Rows come in another order than their places; what changed against the baseline is found all the same."""
    from context_bench.results import EvalRow
    from context_bench.store.backend import Keys

    config = {"systems": ["a", "b"], "metrics": [], "score_field": "score", "datasets": {}, "baseline": "a"}
    with Store(tmp_path) as store, ViewServer(tmp_path) as server:
        run = store.start_run(config)

        def put(place: int) -> None:
            example = {"id": f"e{place // 2}", "context": "c", "question": "q"}
            row = EvalRow("ab"[place % 2], example["id"], {"score": float(place % 2)}, 1, 1)
            store.put_result(
                run, place, Keys(f"{place // 2:016d}".encode(), None, None), example, None, None, row, None
            )

        def wait(rows: int) -> Any:
            give_up = time.monotonic() + 60
            while (state := ask(server, "state", runs=run.id))["total"] < rows:
                assert time.monotonic() < give_up
                time.sleep(0.05)
            return state

        give_up = time.monotonic() + 60
        while run.id not in [each["id"] for each in ask(server, "runs")["runs"]]:
            assert time.monotonic() < give_up
        for place in (1, 5, 4):
            put(place)
        first = wait(3)
        assert first["under_way"]
        page = Reply(server, f"/{server.token}/run/{run.id}").text
        assert "The run is in progress: 3 rows so far" in page
        for place in (0, 2, 3):
            put(place)
        second = wait(6)
        assert second["version"] != first["version"]
        assert ask(server, "rows", runs=run.id)["found"] == 6
        assert ask(server, "runs")["runs"][0]["status"] == "under way"
    assert second["total"] == 6


@pytest.mark.parametrize("head", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"])
def test_a_request_that_drips_is_cut(head: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_server, "_IDLE_TIMEOUT", 0.5)
    with ViewServer(folder) as server, socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(head)
        started = time.monotonic()
        try:
            while time.monotonic() < started + 5:
                time.sleep(0.1)
                client.sendall(b"x")
        except OSError:
            pass
    assert time.monotonic() - started < 2
