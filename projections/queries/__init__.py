"""Answer queries: standings, histories, explanations, predictions, and the state of leagues, lists and rulesets."""
