"""Trainers that step after each sequence or small batch: SGD, AdaGrad, natural gradient, PSA, SMD, Aitken."""
