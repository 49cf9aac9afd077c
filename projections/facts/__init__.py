"""The log as columns: decoded, cached, scanned by the page; what replay and every answer begin with."""
