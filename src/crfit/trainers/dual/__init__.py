"""Trainers on the dual: exponentiated gradient."""
