"""The program `pyoco-client`: one file a command."""
