"""What a person sees who opens the server's address in a browser."""
