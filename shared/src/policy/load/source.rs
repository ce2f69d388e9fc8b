//! Where the bytes of policies come from: this binary, or regular files of
//! bounded size.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The built-in policies, by name.
pub const BUILT_IN: &[&str] = &["default", "strict"];

/// The text of a built-in policy.
pub fn built_in(name: &str) -> Option<&'static str> {
    match name {
        "default" => Some(include_str!("../../../../policies/default.yaml")),
        "strict" => Some(include_str!("../../../../policies/strict.yaml")),
        _ => None,
    }
}

/// Reads a regular file of at most `bytes_max` bytes; one more byte is read so that the caller can tell.
pub(super) fn read(path: &Path, bytes_max: usize) -> Result<Vec<u8>, String> {
    let file = File::open(path).map_err(|error| format!("can't be read: {error}"))?;
    let metadata = file.metadata().map_err(|error| format!("can't be read: {error}"))?;
    if !metadata.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes).map_err(|error| format!("can't be read: {error}"))?;
    Ok(bytes)
}
