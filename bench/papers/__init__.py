"""Papers: for each, what it claims, how that is measured, and the tables and pictures that it has."""
