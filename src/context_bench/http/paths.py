"""Where an API is asked: a base URL may be given with or without `/v1`, or with the whole path."""

from __future__ import annotations

from context_bench.http.secrets import check_url

__all__ = ["describe_path", "find_api_root", "split_api_url"]


def split_api_url(url: str, path: str) -> tuple[str, str]:
    """The base URL and the path after it, for an API that is asked at `/v1` + path or exactly where the URL says."""
    base = check_url(url)
    if base.endswith(path):
        return base.removesuffix(path), path
    return base, path if base.endswith("/v1") else f"/v1{path}"


def find_api_root(url: str) -> str:
    """Find the part before `/v1`, however much of the path the URL has."""
    base = check_url(url)
    for path in ("/chat/completions", "/messages"):
        base = base.removesuffix(f"/v1{path}")
    return base.removesuffix("/v1").rstrip("/")


def describe_path(base_url: str, path: str) -> dict[str, str]:
    """Give what a fingerprint must add to the base URL: the path, where the base does not imply it."""
    explicit = not path.startswith("/v1/") and not base_url.endswith("/v1")
    return {"path": path} if explicit else {}
