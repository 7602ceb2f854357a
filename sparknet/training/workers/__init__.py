"""Workers: what one worker of a run does, from its first call to its last, and processes here."""
