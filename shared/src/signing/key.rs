//! A private key: made from random bytes, kept in a file that only its owner can read, used to sign.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::Signer as _;
use nix::fcntl::OFlag;
use zeroize::Zeroizing;

use super::envelope::{Envelope, PayloadType, encode_for_signing};
use crate::digest::Digest;

/// What a key file starts with, so that no other file is taken for one.
const PREFIX: &str = "checkrein-ed25519:";

/// A key file has fewer bytes than this.
const FILE_BYTES_MAX: u64 = 256;

/// Why a key file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The system refused.
    #[error("can't {action} the key file `{path}`")]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Others could have read or replaced the key.
    #[error("the key file `{path}` {problem}: others may know the key; revoke it and make a new one, or fix the file")]
    Exposed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The content is no key.
    #[error("`{path}` is not a key file")]
    NotAKey {
        /// The file.
        path: PathBuf,
    },
}

/// A private Ed25519 key. Its memory is wiped when it is dropped, and its `Debug` form shows the public key id only.
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// Makes a key from 32 random bytes of the operating system; the caller draws them.
    pub fn from_random(bytes: &Zeroizing<[u8; 32]>) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(bytes))
    }

    /// The public key.
    pub fn public_key(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    /// The digest of the public key, which names this key everywhere.
    pub fn key_id(&self) -> Digest {
        Digest::of(self.public_key())
    }

    /// Signs a payload.
    pub fn sign(&self, payload_type: PayloadType, payload: &[u8]) -> Envelope {
        let signature = self.0.sign(&encode_for_signing(payload_type.as_str(), payload));
        Envelope::new(payload_type, payload, self.key_id(), &signature.to_bytes())
    }

    /// Writes the key to a new file with mode 0600. When it returns, the key survives a power cut.
    ///
    /// # Errors
    ///
    /// [`KeyFileError::Io`]; among others where the file exists, because a key is never overwritten.
    pub fn save(&self, path: &Path) -> Result<(), KeyFileError> {
        self.write(path).map_err(|source| KeyFileError::Io { action: "write", path: path.to_owned(), source })
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = parent.unwrap_or(Path::new("."));
        // The temporary file is born with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        let mut text = Zeroizing::new(PREFIX.to_owned());
        STANDARD.encode_string(self.0.as_bytes(), &mut text);
        text.push('\n');
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist_noclobber(path).map_err(|e| e.error)?;
        File::open(folder)?.sync_all()
    }

    /// Reads a key file that belongs to this user and that nobody else can read.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] with the file and what is wrong with it.
    pub fn load(path: &Path) -> Result<Self, KeyFileError> {
        let failed = |source| KeyFileError::Io { action: "read", path: path.to_owned(), source };
        // No link is followed, and a pipe in its place does not hang us.
        let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let exposed = |problem: String| Err(KeyFileError::Exposed { path: path.to_owned(), problem });
        if !metadata.is_file() {
            return exposed("is not a regular file".to_owned());
        }
        if metadata.mode() & 0o077 != 0 {
            return exposed(format!("has mode {:04o}, and only 0600 or less will do", metadata.mode() & 0o7777));
        }
        if metadata.uid() != nix::unistd::geteuid().as_raw() {
            return exposed(format!("belongs to the user with id {}", metadata.uid()));
        }
        let mut text = Zeroizing::new(String::new());
        file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
        Self::parse(&text).ok_or_else(|| KeyFileError::NotAKey { path: path.to_owned() })
    }

    fn parse(text: &str) -> Option<Self> {
        let encoded = text.strip_prefix(PREFIX)?.strip_suffix('\n')?;
        let bytes = Zeroizing::new(STANDARD.decode(encoded).ok()?);
        let bytes: Zeroizing<[u8; 32]> = Zeroizing::new(bytes.as_slice().try_into().ok()?);
        Some(Self::from_random(&bytes))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.key_id().short())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn key(byte: u8) -> SigningKey {
        SigningKey::from_random(&Zeroizing::new([byte; 32]))
    }

    #[test]
    fn signatures_are_those_of_the_standard() {
        // RFC 8032, section 7.1, test 2.
        let secret = hex::decode("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb").unwrap();
        let key = SigningKey::from_random(&Zeroizing::new(secret.try_into().unwrap()));
        let public = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
        assert_eq!(hex::encode(key.public_key()), public);
        let signature = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
        assert_eq!(hex::encode(key.0.sign(&[0x72]).to_bytes()), signature);
    }

    #[test]
    fn a_key_survives_its_file_and_the_file_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        key(1).save(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(SigningKey::load(&path).unwrap().key_id(), key(1).key_id());
        assert!(key(2).save(&path).is_err(), "a key is never overwritten");
        assert_eq!(SigningKey::load(&path).unwrap().key_id(), key(1).key_id());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn a_key_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        key(1).save(&path).unwrap();
        for mode in [0o640, 0o604, 0o620, 0o601] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = SigningKey::load(&path).unwrap_err();
            assert!(matches!(error, KeyFileError::Exposed { .. }), "{mode:o}: {error}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        assert!(SigningKey::load(&path).is_ok());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(SigningKey::load(&link), Err(KeyFileError::Io { .. })));
    }

    #[test]
    fn what_is_no_key_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        key(1).save(&path).unwrap();
        let good = fs::read_to_string(&path).unwrap();
        for bad in
            ["", "x", PREFIX, good.trim_end(), &good.replace("ed25519", "rsa"), &format!("{good}\n"), &good.repeat(9)]
        {
            fs::write(&path, bad).unwrap();
            assert!(matches!(SigningKey::load(&path), Err(KeyFileError::NotAKey { .. })), "{bad}");
        }
        assert!(matches!(SigningKey::load(&folder.path().join("gone")), Err(KeyFileError::Io { .. })));
        assert!(matches!(SigningKey::load(folder.path()), Err(KeyFileError::Exposed { .. })));
    }

    #[test]
    fn debug_output_holds_nothing_secret() {
        let text = format!("{:?}", key(7));
        assert_eq!(text, format!("SigningKey({})", key(7).key_id().short()));
    }
}
