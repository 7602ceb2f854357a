"""The examples start Spark in processes of their own."""

from __future__ import annotations

from tests.spark.java import start_quickly

start_quickly()
