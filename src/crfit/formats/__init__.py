"""Other tools' names and files, one module per tool."""
