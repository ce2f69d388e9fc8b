//! The DSSE envelope (Dead Simple Signing Envelope, version 1) and what exactly is signed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ring::Error;
use crate::digest::Digest;

/// The largest payload that is accepted; records are far smaller.
pub const PAYLOAD_BYTES_MAX: usize = 4 << 20;

/// What a payload is. It is signed with the payload, so that no record can pass for one of another kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PayloadType {
    /// A reviewer's verdict.
    #[serde(rename = "application/vnd.checkrein.verdict+json")]
    Verdict,
    /// A checkpoint, by the worker or the orchestrator that wrote it.
    #[serde(rename = "application/vnd.checkrein.checkpoint+json")]
    Checkpoint,
}

impl PayloadType {
    /// The media type as it is signed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Verdict => "application/vnd.checkrein.verdict+json",
            Self::Checkpoint => "application/vnd.checkrein.checkpoint+json",
        }
    }
}

/// A signed payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Envelope {
    /// What the payload is.
    pub payload_type: PayloadType,
    /// The payload, in base64 (standard alphabet, padded).
    pub payload: String,
    /// Exactly one signature.
    pub signatures: Vec<Signature>,
}

/// One signature of an envelope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// The digest of the public key.
    pub keyid: Digest,
    /// The signature, in base64.
    pub sig: String,
}

impl Envelope {
    pub(super) fn new(payload_type: PayloadType, payload: &[u8], keyid: Digest, signature: &[u8]) -> Self {
        let signatures = vec![Signature { keyid, sig: STANDARD.encode(signature) }];
        Self { payload_type, payload: STANDARD.encode(payload), signatures }
    }

    /// The payload, unverified: use [`super::KeyRing::verify`] before believing it.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] where it is no base64 or too large.
    pub fn payload_unverified(&self) -> Result<Vec<u8>, Error> {
        if self.payload.len() / 4 * 3 > PAYLOAD_BYTES_MAX {
            return Err(Error::Malformed { what: "the payload is too large" });
        }
        STANDARD.decode(&self.payload).map_err(|_| Error::Malformed { what: "the payload is not base64" })
    }

    /// The only signature, and its bytes.
    pub(super) fn signature(&self) -> Result<(Digest, [u8; 64]), Error> {
        let [signature] = self.signatures.as_slice() else {
            return Err(Error::Malformed { what: "there is not exactly one signature" });
        };
        let bytes = STANDARD.decode(&signature.sig).ok().and_then(|bytes| bytes.try_into().ok());
        let bytes = bytes.ok_or(Error::Malformed { what: "the signature is not 64 bytes in base64" })?;
        Ok((signature.keyid, bytes))
    }
}

/// The bytes that are signed: DSSE's pre-authentication encoding. The lengths make it unambiguous.
pub(super) fn encode_for_signing(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signed_bytes_are_those_of_the_specification() {
        let encoded = encode_for_signing("http://example.com/HelloWorld", b"hello world");
        assert_eq!(encoded, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    }

    #[test]
    fn unknown_kinds_and_fields_are_refused() {
        let good = r#"{"payloadType":"application/vnd.checkrein.verdict+json","payload":"","signatures":[]}"#;
        assert!(crate::json::parse_as::<Envelope>("envelope", good.as_bytes()).is_ok());
        for bad in [good.replace("verdict", "other"), good.replace("\"payload\"", "\"x\":1,\"payload\"")] {
            assert!(crate::json::parse_as::<Envelope>("envelope", bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_written_name_is_the_signed_name() {
        for kind in [PayloadType::Verdict, PayloadType::Checkpoint] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }
}
