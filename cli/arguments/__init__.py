"""What people type: options, coordinates, files; and the facts that they ask for."""
