"""How fast crfit is: the core, other tools, all trainers side by side."""
