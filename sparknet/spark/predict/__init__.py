"""Prediction on executors: what sparknet.predict does, carried by Spark."""
