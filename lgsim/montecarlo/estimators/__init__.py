"""Estimators of rare events, means and gradients with a smaller variance than plain sampling."""
