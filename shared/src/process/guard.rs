//! Keeps a process's own memory and environment from other processes of the same user.

use std::io;

use nix::sys::prctl;

/// Makes this process's memory and environment unreadable for others of the same user (`/proc/<pid>/environ`, `ptrace`,
/// core dumps), the way a process that holds keys should be. What it starts is not affected. It does not hold against
/// root.
///
/// # Errors
///
/// The system's reason, which no ordinary Linux has.
pub fn hide_own_memory() -> io::Result<()> {
    prctl::set_dumpable(false).map_err(io::Error::from)
}
