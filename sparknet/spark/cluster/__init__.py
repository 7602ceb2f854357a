"""Sessions, executors, GPUs, and what a job needs before it starts."""
