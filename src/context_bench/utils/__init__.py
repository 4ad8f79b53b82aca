"""Contains only `tokens`, whose path the specification fixes."""
