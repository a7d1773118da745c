"""Dense linear algebra for small matrices with the batch on the last axes: products, inverses, QPs, least squares.

XLA calls a library for each matrix of a batch to factor or multiply it, which for small matrices costs more than the
arithmetic. This package uses loops and elementwise sums, which become parts of native functions on CPU.
"""
