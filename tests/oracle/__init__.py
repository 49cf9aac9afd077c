"""A naive second implementation of the program, which computes each answer anew from a list of events, in fractions.

It shares no code with the program, so agreement of the two is evidence that both are right. `log` derives games and
identities from events, `validation` decides which new events are accepted, `ladders` computes the standings of any
ladder, `causes` checks attributions, and `clock` is the clock of a game.
"""
