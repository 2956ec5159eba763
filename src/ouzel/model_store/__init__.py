"""Finds, downloads, lists and removes models and the files that Ouzel made of them."""
