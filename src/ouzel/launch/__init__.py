"""`ouzel launch` starts a client with settings for a running server."""
