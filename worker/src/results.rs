//! Reads the result file that an agent may have left.
//!
//! The file is the agent's: it may be anything, of any size, or a trap. It is
//! read only when nothing of the agent runs any more. What it says is judged
//! in [`crate::claims`].

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use checkrein_shared::causes::with_causes;
use checkrein_shared::records::{RESULT_BYTES_MAX, ResultFile};

/// What stands at the path of the result file.
#[derive(Debug)]
pub(crate) enum Found {
    /// Nothing: the agent said nothing.
    Nothing,
    /// A result file, with its bytes.
    Result(ResultFile, Vec<u8>),
    /// Something else: the bytes where there are any, and what is wrong with it.
    Refused(Option<Vec<u8>>, String),
}

/// Reads the file.
pub(crate) fn read(path: &Path) -> Found {
    match bytes(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Found::Nothing,
        Err(error) => Found::Refused(None, error.to_string()),
        Ok(bytes) if bytes.len() as u64 > RESULT_BYTES_MAX => {
            Found::Refused(None, format!("it is larger than {} KiB", RESULT_BYTES_MAX / 1024))
        }
        Ok(bytes) => match ResultFile::parse(&bytes) {
            Ok(file) => Found::Result(file, bytes),
            Err(error) => Found::Refused(Some(bytes), with_causes(&error)),
        },
    }
}

/// At most one byte more than allowed, of a regular file only: a link could lead to what the agent itself may not read,
/// and a pipe would block.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let flags = nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(RESULT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(found: Found) -> String {
        match found {
            Found::Refused(_, why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_result_file_is_read_and_a_missing_one_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("result.json");
        assert!(matches!(read(&path), Found::Nothing));
        std::fs::write(&path, r#"{"version":1,"claims":[{"text":"x"}]}"#).unwrap();
        assert!(matches!(read(&path), Found::Result(file, _) if file.claims.len() == 1));
    }

    #[test]
    fn anything_else_is_refused_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("result.json");
        std::fs::write(&path, "I fixed everything!").unwrap();
        assert!(refused(read(&path)).contains("not strict JSON"));
        std::fs::write(&path, vec![b' '; 300 * 1024]).unwrap();
        assert!(refused(read(&path)).contains("256 KiB"));
        std::fs::remove_file(&path).unwrap();
        std::fs::write(dir.path().join("secret"), r#"{"version":1}"#).unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), &path).unwrap();
        refused(read(&path));
        std::fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(refused(read(&path)).contains("regular file"));
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        refused(read(&path));
    }
}
