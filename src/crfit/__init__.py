"""Train linear-chain conditional random fields to the optimum, fast, and tag with them."""

__version__ = "0.1.0"
