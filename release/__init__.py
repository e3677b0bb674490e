"""What makes and checks a release: wheels, their tests, the oldest dependencies."""
