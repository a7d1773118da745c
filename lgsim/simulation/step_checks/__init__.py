"""The errors of the steps of simulations, and what helps where they are large."""
