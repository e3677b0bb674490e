"""Mistake-driven trainers, which update on wrong best paths: perceptron, PA, AROW."""
