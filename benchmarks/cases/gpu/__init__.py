"""Cases of the benchmark of GPUs."""
