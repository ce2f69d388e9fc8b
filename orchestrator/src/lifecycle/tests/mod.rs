//! The core against its table, and the subtle pairs one by one.

mod fixture;

mod accepting;
mod calls;
mod consent;
mod drifting;
mod effects;
mod half_applied;
mod history;
mod holes;
mod paused;
mod people;
mod rules;
mod saving;
mod table;
mod verdicts;
