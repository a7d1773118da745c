"""Parts of the benchmark of contacts."""
