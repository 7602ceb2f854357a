"""Training by tasks of Spark."""
