"""What people see: tables, JSON, CSV, pages, progress."""
