"""Read the arguments of commands: options, coordinates, files, and answers at a terminal."""
