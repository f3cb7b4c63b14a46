"""A trained run over HTTP: the application, its page, and a client."""
