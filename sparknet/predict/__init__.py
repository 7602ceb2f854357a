"""Prediction: Arrow batches in, Arrow batches out; it needs pyarrow, and no Spark."""
