"""Hosts of workers on Spark: a barrier stage, or a job of one task for each worker."""
