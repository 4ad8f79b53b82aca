"""Child processes: started, watched, and ended together with their own children."""
