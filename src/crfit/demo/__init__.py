"""Built-in data: recipe ingredient lines with labels, of any size, from a seed."""

from crfit.demo.recipes import attributes, recipe_data, recipe_lines, token_class, write_columns

__all__ = ["attributes", "recipe_data", "recipe_lines", "token_class", "write_columns"]
