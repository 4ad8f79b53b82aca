"""The HTTP client: pooled connections, retries, rate limits, and careful handling of keys."""

from context_bench.http.endpoint import Endpoint, Exchange
from context_bench.http.gate import RetryPolicy
from context_bench.http.secrets import Secret, find_key
from context_bench.http.transport import Reply, Transport

__all__ = ["Endpoint", "Exchange", "Reply", "RetryPolicy", "Secret", "Transport", "find_key"]
