"""The experiments of SparkNet, dynamic averaging, BigDL and TensorSpark, in virtual time."""
