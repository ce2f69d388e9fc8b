//! Takes secrets out of bytes before they are hashed, stored or shown.
//!
//! A [`Redactor`] knows the shapes of common credentials (in packs that a policy switches), the regexes that a policy
//! adds, and the exact values of the secrets that a task was given. What it finds it replaces by `[redacted:<id>]` and
//! counts. [`Redactor::find`] only looks: it is the check for secrets in a diff. [`Stream`] does the same to output
//! that arrives in pieces.
//!
//! It works on raw bytes and judges content only: which files are secret by name, see [`crate::tree`]. It finds what
//! looks like a credential; a secret that looks like an ordinary word and was not named in advance stays.

mod builder;
mod find;
mod known;
mod packs;
mod secret;
mod stream;

pub use builder::{Builder, Error, PACKS};
pub use find::{Hit, Redacted, Redactor};
pub use secret::Secret;
pub use stream::Stream;
