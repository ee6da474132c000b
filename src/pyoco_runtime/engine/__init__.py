"""Flows and their execution. The only importer of pyoco."""
