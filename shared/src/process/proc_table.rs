//! Reads the process table of `/proc`: who is whose child, and in which session.
//!
//! It sends no signals; see the supervisor for why only direct children are ever signalled by number.

use std::fs;
use std::io;

use nix::unistd::Pid;

/// One line of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) parent: Pid,
    pub(super) session: Pid,
    /// It has ended and only waits for its parent to notice.
    pub(super) is_zombie: bool,
}

/// All processes that are visible now.
pub(super) fn processes() -> io::Result<Vec<Process>> {
    let entries = fs::read_dir("/proc")?;
    // A process that ends while we read is not an error, it is simply no longer there.
    Ok(entries
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit))
        .filter_map(|entry| parse(&fs::read(entry.path().join("stat")).ok()?))
        .collect())
}

/// Parses `pid (name) state parent group session ...`; the name may hold any byte, also `)` and spaces.
fn parse(stat: &[u8]) -> Option<Process> {
    let open = stat.iter().position(|b| *b == b'(')?;
    let close = stat.iter().rposition(|b| *b == b')')?;
    let number = |text: &str| text.parse().ok().map(Pid::from_raw);
    let pid = number(std::str::from_utf8(stat.get(..open)?).ok()?.trim())?;
    let rest = String::from_utf8_lossy(stat.get(close + 1..)?).into_owned();
    let mut fields = rest.split_ascii_whitespace();
    let is_zombie = matches!(fields.next()?, "Z" | "X");
    let parent = number(fields.next()?)?;
    let session = number(fields.nth(1)?)?;
    Some(Process { pid, parent, session, is_zombie })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_process_name_does_not_confuse_the_parser() {
        let line = b"42 (a) R 1 (\xff\n) S 7 8 9 0 -1 4194560";
        let expected =
            Process { pid: Pid::from_raw(42), parent: Pid::from_raw(7), session: Pid::from_raw(9), is_zombie: false };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"42 )("), None);
    }

    #[test]
    fn this_process_is_in_the_table() {
        let own = processes().unwrap().into_iter().find(|process| process.pid == Pid::this()).unwrap();
        assert_eq!(own.parent, Pid::parent());
    }
}
