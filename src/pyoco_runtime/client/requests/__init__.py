"""What can be asked of a gateway, one file a resource: pure functions that make requests."""
