//! x
pub mod http;
