"""Problems from TOML files: scenarios of trajectory optimization, Monte Carlo studies, maps of recordings."""
