claims=pictures=tables=None
