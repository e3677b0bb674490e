"""Parameters and files of other tools, one module per tool."""
