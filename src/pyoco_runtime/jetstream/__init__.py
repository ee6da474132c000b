"""The ports on NATS JetStream. The only importer of nats."""
