"""Ways to find unknowns from records: by joint forces, by simulation, by random parts of many records."""
