"""Cases of the benchmark of machines with loops."""
