"""Control design on the formulas of a model: linear models, Lie derivatives, feedback linearization."""
