"""Compares sparknet with PyTorch and, if there is one, a real Caffe.

    python -m benchmarks.peers

Each side is a process of its own, driven over a pipe, so that it has its own memory and the
same threads; sides take turns, and only one computes at a time.
"""
