"""Training of PyTorch's own modules: what a net and its solver are elsewhere.

torch is imported by what computes with it, never by what a training of a net needs.
"""
