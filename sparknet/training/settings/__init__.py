"""Settings of training: kinds of values, fields with checks, and the groups of settings."""
