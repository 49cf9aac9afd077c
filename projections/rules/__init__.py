"""The scoring rules, one pure file each; `registry` lists them."""
