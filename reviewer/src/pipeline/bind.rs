//! Ninth stage: binds the opinion to what was asked about, and signs it.
//!
//! The bindings are those of the request: a verdict answers exactly that
//! question. An approval was compared with the record and with what is in force.
