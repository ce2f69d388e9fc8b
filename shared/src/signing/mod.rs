//! Signatures over records: Ed25519 keys, DSSE envelopes, and the ring of public keys that says whose word counts.
//!
//! An envelope holds the exact bytes that were signed, so a reader never has to rebuild them. Verification checks the
//! kind of payload, the role of the key, and whether the key was good at a given time.
//!
//! It does not say what a signed record means, and it draws no randomness: key material comes in as an argument.

mod envelope;
mod key;
mod ring;

pub use envelope::{Envelope, PAYLOAD_BYTES_MAX, PayloadType, Signature};
pub use key::{KeyFileError, SigningKey};
pub use ring::{Error, KeyRecord, KeyRing, Verified};
