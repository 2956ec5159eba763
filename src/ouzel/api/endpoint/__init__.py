"""What an endpoint is made of, and the record by which it is known."""
