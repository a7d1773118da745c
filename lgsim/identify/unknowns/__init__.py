"""What can be identified: a plant, and blocks of unknown numbers with priors and bounds."""
