//! Secrets: found in what a change adds, and removed from what verifiers print.
//! The patterns are [`checkrein_shared::redact`]'s; this module only fits them to
//! lines of files and to outputs with a gap.
