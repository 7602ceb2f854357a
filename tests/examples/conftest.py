"""The examples start Spark in processes of their own."""

from tests.spark.java import start_quickly

start_quickly()
