//! The public keys that are known, whose they are, and when they were good.
//!
//! It decides whether a signature counts at a time that the caller names: the time at which the envelope was journaled,
//! not now. A rotated key therefore keeps its verdicts, a compromised one loses those since the compromise.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::VerifyingKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::envelope::{Envelope, PayloadType, encode_for_signing};
use crate::digest::Digest;
use crate::ids::InstanceId;
use crate::records::Role;
use crate::time::Timestamp;

/// Why a signature does not count, or a key can't be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The envelope itself is broken.
    #[error("the envelope is malformed: {what}")]
    Malformed {
        /// What is wrong with it.
        what: &'static str,
    },
    /// It holds another kind of record.
    #[error("the envelope holds `{found}`, not `{expected}`")]
    WrongPayloadType {
        /// What was asked for.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// Nobody is known by that key.
    #[error("the key {key_id} is not known")]
    UnknownKey {
        /// The key.
        key_id: Digest,
    },
    /// The key belongs to somebody who may not sign this.
    #[error("the key {key_id} belongs to a {found}, and only a {expected} may sign this")]
    WrongRole {
        /// The key.
        key_id: Digest,
        /// Who may sign.
        expected: &'static str,
        /// Whose key it is.
        found: &'static str,
    },
    /// The key was not, or no longer, good at that time.
    #[error("the key {key_id} was {state} at {at}")]
    NotValid {
        /// The key.
        key_id: Digest,
        /// `not yet valid`, `revoked` or `compromised`.
        state: &'static str,
        /// The time that was asked about.
        at: Timestamp,
    },
    /// The bytes were not signed by that key.
    #[error("the signature does not match its payload and the key {key_id}")]
    BadSignature {
        /// The key.
        key_id: Digest,
    },
    /// The bytes are no usable public key, or not the one that the id names.
    #[error("the public key of `{instance}` is unusable: {reason}")]
    BadKey {
        /// Whose key it is.
        instance: InstanceId,
        /// What is wrong with it.
        reason: &'static str,
    },
}

/// One public key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyRecord {
    /// The digest of the public key.
    pub key_id: Digest,
    /// The public key: 32 bytes in base64.
    pub public_key: String,
    /// What its owner may sign.
    pub role: Role,
    /// Whose it is.
    pub instance: InstanceId,
    /// Signatures count from this time on.
    pub valid_from: Timestamp,
    /// Signatures from this time on don't count; earlier ones do.
    pub revoked_at: Option<Timestamp>,
    /// Somebody else may have had the key from this time on: nothing since then counts.
    pub compromised_since: Option<Timestamp>,
}

impl KeyRecord {
    /// The record of a new key.
    pub fn new(public_key: [u8; 32], role: Role, instance: InstanceId, valid_from: Timestamp) -> Self {
        Self {
            key_id: Digest::of(public_key),
            public_key: STANDARD.encode(public_key),
            role,
            instance,
            valid_from,
            revoked_at: None,
            compromised_since: None,
        }
    }

    fn verifying_key(&self) -> Result<VerifyingKey, Error> {
        let bad = |reason| Error::BadKey { instance: self.instance.clone(), reason };
        let bytes = STANDARD.decode(&self.public_key).map_err(|_| bad("it is not base64"))?;
        let bytes: [u8; 32] = bytes.try_into().map_err(|_| bad("it is not 32 bytes"))?;
        if Digest::of(bytes) != self.key_id {
            return Err(bad("its digest is not the key id"));
        }
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| bad("it is not a point of the curve"))?;
        if key.is_weak() { Err(bad("anybody could sign for it")) } else { Ok(key) }
    }

    fn check_valid(&self, at: Timestamp) -> Result<(), Error> {
        let state = if self.compromised_since.is_some_and(|since| since <= at) {
            "compromised"
        } else if self.revoked_at.is_some_and(|since| since <= at) {
            "revoked"
        } else if at < self.valid_from {
            "not yet valid"
        } else {
            return Ok(());
        };
        Err(Error::NotValid { key_id: self.key_id, state, at })
    }
}

/// A payload whose signature counts, and whose it is. Compare `instance` with the author that the payload names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The signed bytes.
    pub payload: Vec<u8>,
    /// The key that signed them.
    pub key_id: Digest,
    /// The owner of that key.
    pub instance: InstanceId,
}

/// All known public keys. A key is never removed, only revoked, so that old records stay explicable.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyRing {
    keys: Vec<KeyRecord>,
}

impl KeyRing {
    /// A ring that trusts nobody.
    pub fn new() -> Self {
        Self::default()
    }

    /// All keys, in the order of their addition.
    pub fn keys(&self) -> &[KeyRecord] {
        &self.keys
    }

    /// Adds a key. Adding the same record again changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::BadKey`] where the key is unusable, or known already with another owner, role or time.
    pub fn add(&mut self, record: KeyRecord) -> Result<(), Error> {
        record.verifying_key()?;
        match self.keys.iter().find(|known| known.key_id == record.key_id) {
            None => self.keys.push(record),
            Some(known) if *known == record => {}
            Some(_) => {
                return Err(Error::BadKey {
                    instance: record.instance,
                    reason: "the same key is known otherwise already",
                });
            }
        }
        Ok(())
    }

    /// Ends a key's validity; what it signed before stays valid. The earliest revocation counts.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownKey`].
    pub fn revoke(&mut self, key_id: Digest, at: Timestamp) -> Result<(), Error> {
        let record = self.find_mut(key_id)?;
        record.revoked_at = Some(record.revoked_at.map_or(at, |earlier| earlier.min(at)));
        Ok(())
    }

    /// Records that somebody else may have had the key since a time. The earliest such time counts.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownKey`].
    pub fn compromise(&mut self, key_id: Digest, since: Timestamp) -> Result<(), Error> {
        let record = self.find_mut(key_id)?;
        record.compromised_since = Some(record.compromised_since.map_or(since, |earlier| earlier.min(since)));
        Ok(())
    }

    /// Checks an envelope as of the time `at` at which it was journaled.
    ///
    /// # Errors
    ///
    /// [`Error`]; any of them means that the payload must not be believed.
    pub fn verify(
        &self,
        envelope: &Envelope,
        payload_type: PayloadType,
        role: Role,
        at: Timestamp,
    ) -> Result<Verified, Error> {
        if envelope.payload_type != payload_type {
            let (expected, found) = (payload_type.as_str(), envelope.payload_type.as_str());
            return Err(Error::WrongPayloadType { expected, found });
        }
        let (key_id, signature) = envelope.signature()?;
        let known = self.keys.iter().find(|record| record.key_id == key_id);
        let record = known.ok_or(Error::UnknownKey { key_id })?;
        if record.role != role {
            return Err(Error::WrongRole { key_id, expected: role.as_str(), found: record.role.as_str() });
        }
        record.check_valid(at)?;
        let payload = envelope.payload_unverified()?;
        let signed = encode_for_signing(payload_type.as_str(), &payload);
        let signature = ed25519_dalek::Signature::from_bytes(&signature);
        // The strict check leaves one valid signature per message, so an envelope can't be varied into a new digest.
        let matches = record.verifying_key()?.verify_strict(&signed, &signature);
        matches.map_err(|_| Error::BadSignature { key_id })?;
        Ok(Verified { payload, key_id, instance: record.instance.clone() })
    }

    fn find_mut(&mut self, key_id: Digest) -> Result<&mut KeyRecord, Error> {
        self.keys.iter_mut().find(|record| record.key_id == key_id).ok_or(Error::UnknownKey { key_id })
    }
}

#[cfg(test)]
mod tests;
