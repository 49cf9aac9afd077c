"""What the program is measured against: other packages as they are best used, and loops and statements by hand."""
