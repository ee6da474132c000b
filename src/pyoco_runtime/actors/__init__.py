"""One actor a file; they talk through channels and never import each other."""
