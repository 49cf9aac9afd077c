"""How results get into the log: files, lines and tables are read, checked, spooled and appended."""
