"""HTTP: the only room that knows Quart and Hypercorn."""
