"""Cases of the benchmark of distances."""
