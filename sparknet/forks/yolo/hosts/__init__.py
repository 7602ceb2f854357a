"""The layers of this family that Python computes."""
