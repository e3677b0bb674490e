"""Tuning: optima along penalties, and searches over penalties and options by held-out scores."""
