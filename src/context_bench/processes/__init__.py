"""Start, watch and end child processes, together with their own children."""
