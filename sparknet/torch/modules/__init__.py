"""PyTorch's own modules as models: their arguments and losses, flat weights, and files."""
