//! Runs of the program.
