"""Requests on both sides of a proxy, and facts derived from them. Pure: no sockets, no store."""
