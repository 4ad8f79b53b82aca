"""The tool calls of a reply, and how their arguments are compared."""
