"""Built-in data: labelled recipe ingredient lines, generated in any number from a seed."""

from crfit.demo.recipes import attributes, recipe_data, recipe_lines, token_class, write_columns

__all__ = ["attributes", "recipe_data", "recipe_lines", "token_class", "write_columns"]
