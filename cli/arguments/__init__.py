"""What people type: options, coordinates, files; and the facts they ask for."""
