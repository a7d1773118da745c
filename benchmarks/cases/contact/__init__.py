"""Cases of the benchmark of contacts."""
