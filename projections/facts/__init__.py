"""The log as columns: decoded, cached, scanned page by page; what replay and every answer start from."""
