"""Small dense algebra whose batch is on the last axes: products, inverses, quadratic programs, least squares.

XLA calls a library for each matrix of a batch to factor or to multiply it, which for small ones costs more than the
arithmetic; what stands here is loops and elementwise sums, parts of native functions on CPU.
"""
