"""Use cases (`api.services`) and the doors that translate to them."""
