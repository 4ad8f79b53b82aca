"""Requests as seen on both sides of a proxy, and what follows from them. Pure: no socket, no store."""
