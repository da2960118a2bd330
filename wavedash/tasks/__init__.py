"""What tasks of any environment are made of: parts, weighted rewards, mixtures of starts, endings, and lookup by name."""
