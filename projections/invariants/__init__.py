"""The promises of the system, checked event by event over a log; pure folds that never stop at the first thing they find."""
