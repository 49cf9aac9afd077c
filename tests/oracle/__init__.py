"""What the program must say, worked out a second time, naively: from a plain list of events, with fractions, anew at
every question. Nothing is shared with the program, so that it means something when the two agree. `log` says what the
events come to and `validation` which new ones are taken; `ladders` answers any question about any ladder and `causes`
why the answer changed; `clock` is the clock of a game.
"""
