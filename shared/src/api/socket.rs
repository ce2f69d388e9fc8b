//! Where the local API listens: a Unix socket in the data folder.
//!
//! The kernel limits a socket's path to 107 bytes, and data folders may stand
//! deeper. A long path is therefore reached through the folder's open
//! descriptor. This module neither binds nor connects.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::routes::SOCKET_FILE;

/// The longest path that every kernel accepts, in bytes, without the closing zero.
const PATH_BYTES_MAX: usize = 100;

/// The address of the socket; keep it for as long as its path is in use.
#[derive(Debug)]
pub struct SocketAddress {
    path: PathBuf,
    /// Keeps the descriptor open that a short path goes through.
    _folder: Option<File>,
}

impl SocketAddress {
    /// The address of the socket in a data folder.
    ///
    /// # Errors
    ///
    /// The folder's path is long and it can't be opened.
    pub fn of(data: &Path) -> io::Result<Self> {
        let path = data.join(SOCKET_FILE);
        if path.as_os_str().as_bytes().len() <= PATH_BYTES_MAX {
            return Ok(Self { path, _folder: None });
        }
        let folder = File::open(data)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET_FILE}", folder.as_raw_fd()));
        Ok(Self { path, _folder: Some(folder) })
    }

    /// A path that fits.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn a_socket_in_a_deep_folder_can_be_bound_and_reached() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("d".repeat(90)).join("e".repeat(90));
        std::fs::create_dir_all(&deep).unwrap();
        assert!(UnixListener::bind(deep.join(SOCKET_FILE)).is_err(), "the plain path is too long");

        let server = SocketAddress::of(&deep).unwrap();
        let _listener = UnixListener::bind(server.path()).unwrap();
        let client = SocketAddress::of(&deep).unwrap();
        UnixStream::connect(client.path()).unwrap();
        assert!(deep.join(SOCKET_FILE).exists());
    }
}
