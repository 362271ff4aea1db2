"""Memory perception: retrieval, the HTTP API, the Ray Serve application and the command line."""
