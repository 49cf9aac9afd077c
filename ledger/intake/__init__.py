"""The way of results into the log: files, lines and tables are read, checked, spooled and appended."""
