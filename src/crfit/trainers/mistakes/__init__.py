"""Trainers that learn from mistakes of the best path: perceptron, PA, AROW."""
