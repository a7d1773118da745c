"""Parts of the benchmark of distances."""
