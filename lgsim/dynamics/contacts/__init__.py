"""Forces of contacts, their energy, and advice about their numbers."""
