"""Cases of the benchmark of closed kinematic loops."""
