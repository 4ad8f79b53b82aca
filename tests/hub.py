"""A hub on loopback: enough of the Hugging Face protocol for its own client to read datasets from it.

Repositories are dicts of files by revision. Every request is kept, so that tests see what was read.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


@dataclass
class Repository:
    """One dataset repository: files by commit, and the branches that point at commits."""

    files: dict[str, dict[str, bytes]]
    branches: dict[str, str]
    gated: bool = False

    def commit(self, revision: str) -> str | None:
        known = self.branches.get(revision, revision)
        return known if known in self.files else None


@dataclass
class Hub:
    """The server's state, what was asked of it, the bytes that went out of each file, and the files it keeps back."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    served: dict[str, int] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    delay: float = 0.0
    """Seconds that each file takes."""
    url: str = ""

    def add(self, name: str, files: dict[str, bytes], *, gated: bool = False, **branches: dict[str, bytes]) -> str:
        """Add a repository whose main branch has these files; the commit of main."""
        by_branch = {"main": files, **branches}
        commits = {branch: _commit(name, branch) for branch in by_branch}
        stored = {commits[branch]: content for branch, content in by_branch.items()}
        self.repositories[name] = Repository(stored, commits, gated)
        return commits["main"]


def _commit(name: str, branch: str) -> str:
    return hashlib.sha1(f"{name}@{branch}".encode()).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_POST = do_GET

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append(f"{self.command} {path}")
        for name, repository in self.hub.repositories.items():
            if path.startswith(f"/api/datasets/{name}"):
                return self._api(repository, name, path.removeprefix(f"/api/datasets/{name}").strip("/"), body)
            if path.startswith(f"/datasets/{name}/resolve/"):
                time.sleep(self.hub.delay)
                return self._file(repository, path.removeprefix(f"/datasets/{name}/resolve/"))
        return self._error(404, "RepoNotFound")

    def _api(self, repository: Repository, name: str, rest: str, body: bytes) -> None:
        action, _, rest = rest.partition("/")
        revision, path = self._split(repository, rest) if rest else ("main", "")
        commit = repository.commit(revision)
        if commit is None:
            return self._error(404, "RevisionNotFound")
        files = repository.files[commit]
        if action in ("", "revision"):
            siblings = [{"rfilename": each} for each in files]
            facts = {"id": name, "sha": commit, "siblings": siblings, "gated": "auto" if repository.gated else False}
            return self._json({**facts, "private": False, "tags": [], "downloads": 0, "likes": 0, "disabled": False})
        if action == "tree":
            return self._json(_tree(files, path, "recursive=True" in self.path or "recursive=true" in self.path))
        if action == "paths-info":
            return self._json([entry for wanted in _paths(body) for entry in _entries(files, wanted)])
        return self._error(404, "EntryNotFound")

    @staticmethod
    def _split(repository: Repository, rest: str) -> tuple[str, str]:
        for known in (*repository.branches, *repository.files):
            if rest == known or rest.startswith(f"{known}/"):
                return known, rest[len(known) + 1 :]
        revision, _, path = rest.partition("/")
        return revision, path

    def _file(self, repository: Repository, rest: str) -> None:
        revision, path = self._split(repository, rest)
        commit = repository.commit(revision)
        if commit is None:
            return self._error(404, "RevisionNotFound")
        if repository.gated or path in self.hub.refused:
            return self._error(401, "GatedRepo")
        content = repository.files[commit].get(path)
        if content is None:
            return self._error(404, "EntryNotFound")
        start, end = 0, len(content)
        asked = self.headers.get("Range")
        if asked:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last or len(content) - 1) + 1, len(content))
        headers = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
        if asked:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
        if self.command != "HEAD":
            self.hub.served[path] = self.hub.served.get(path, 0) + end - start
        return self._send(206 if asked else 200, content[start:end], headers)

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _error(self, status: int, code: str) -> None:
        message = {"error": code}
        self._send(status, json.dumps(message).encode(), {"X-Error-Code": code, "X-Error-Message": code})

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _paths(body: bytes) -> list[str]:
    paths = json.loads(body)["paths"]
    return [paths] if isinstance(paths, str) else paths


def _entry(files: dict[str, bytes], path: str) -> dict[str, Any]:
    return {"type": "file", "path": path, "size": len(files[path]), "oid": hashlib.sha1(files[path]).hexdigest()}


def _folder(path: str) -> dict[str, Any]:
    return {"type": "directory", "path": path, "size": 0, "oid": hashlib.sha1(path.encode()).hexdigest()}


def _entries(files: dict[str, bytes], path: str) -> list[dict[str, Any]]:
    if path in files:
        return [_entry(files, path)]
    return [_folder(path)] if any(each.startswith(f"{path}/") for each in files) else []


def _tree(files: dict[str, bytes], folder: str, recursive: bool) -> list[dict[str, Any]]:
    inside = {path: path.removeprefix(f"{folder}/" if folder else "") for path in files if path.startswith(folder)}
    entries = {}
    for path, inner in inside.items():
        head, slash, _ = inner.partition("/")
        if slash:
            where = f"{folder}/{head}" if folder else head
            entries[where] = _folder(where)
        if recursive or not slash:
            entries[path] = _entry(files, path)
    return list(entries.values())


@contextmanager
def serve_hub() -> Iterator[Hub]:
    """A hub that runs until the block ends."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
