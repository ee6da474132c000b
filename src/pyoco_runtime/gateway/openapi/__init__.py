"""The HTTP API as data: the OpenAPI document, the page for people and the reference page are all made from it."""
