"""The commands that people type, one file each."""
