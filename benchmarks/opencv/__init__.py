"""Compares `sparknet.opencv` with OpenCV: values, drawn nets, milliseconds."""
