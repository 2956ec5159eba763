"""This package brings a client's JSON schema into what the grammar engine honours in full, or refuses it."""
