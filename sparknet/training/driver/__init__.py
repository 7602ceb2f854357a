"""The driver's side of a run: who is there, who is lost, and what comes in."""
