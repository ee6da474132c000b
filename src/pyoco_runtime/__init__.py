"""pyoco-runtime: runs Pyoco flows on many machines, as a supervision tree of small actors around NATS JetStream."""
