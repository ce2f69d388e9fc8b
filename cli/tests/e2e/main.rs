//! The program as people use it: the real binary, real files, real processes.

mod support;

mod bad_input;
mod help;
mod reference;

mod demo;
mod instances;
mod run;
