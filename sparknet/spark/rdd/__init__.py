"""Nets on executors, one for each partition of an RDD."""
