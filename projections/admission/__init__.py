"""What ladders and rules are asked before something is appended or published."""
