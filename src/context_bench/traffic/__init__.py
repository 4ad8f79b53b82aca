"""What was seen of a request on both sides of a proxy, and what follows from it. Pure: no socket, no store."""
