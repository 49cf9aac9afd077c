"""What the program is measured against: other packages used at their best, and hand-written loops and statements."""
