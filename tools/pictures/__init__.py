"""Pictures for the README and the documents are taken of the real programs, so that they can be taken again."""
