"""The prompt of a judge, and how its reply is read."""
