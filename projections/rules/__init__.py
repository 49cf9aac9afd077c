"""The scoring rules, one pure file each; `registry` names them."""
