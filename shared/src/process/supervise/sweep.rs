//! Kills and reaps everything that a command left behind.
//!
//! Only direct children are signalled, never processes deeper down: the number of a direct child can't be taken by a
//! stranger until we reap it, the number of any other process can. Killing a child orphans its children, which then
//! are ours, so the tree is peeled layer by layer until the system says that we have no child.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;

use crate::process::proc_table::{Process, processes};

/// How long processes may take to die: only one stuck in the kernel takes longer than milliseconds.
pub(in crate::process) const SWEEP_LIMIT: Duration = Duration::from_secs(10);

/// How long helpers that end by themselves with their command (a `tee` at the end of a pipe) are given to do so.
const SETTLE_LIMIT: Duration = Duration::from_millis(300);

const PAUSE: Duration = Duration::from_millis(2);

/// What a sweep found.
#[derive(Debug, Default)]
pub(super) struct Swept {
    pub(super) killed: u32,
    pub(super) survivors: u32,
}

/// Reaps orphans as they end, until the command itself has ended; leaves the command unreaped.
pub(super) fn reap_until_ended(main: Pid) {
    loop {
        match waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
            Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..)) if pid != main => {
                let _ = waitpid(pid, Some(WaitPidFlag::WNOHANG));
            }
            // An unknown (real-time) signal ended somebody, whom the library does not name.
            Err(Errno::EINVAL) if !has_ended(main) => reap_zombies(main),
            Err(Errno::EINTR) | Ok(WaitStatus::StillAlive) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

fn has_ended(main: Pid) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
    !matches!(waitid(Id::Pid(main), flags), Ok(WaitStatus::StillAlive))
}

fn reap_zombies(main: Pid) {
    for child in children().into_iter().filter(|child| child.is_zombie && child.pid != main) {
        let _ = waitpid(child.pid, Some(WaitPidFlag::WNOHANG));
    }
}

fn children() -> Vec<Process> {
    let own = Pid::this();
    processes().unwrap_or_default().into_iter().filter(|process| process.parent == own).collect()
}

/// Gives what the ended command left a moment to end by itself. Returns how many processes are still there.
pub(super) fn settle(main: Pid) -> u32 {
    let deadline = Instant::now() + SETTLE_LIMIT;
    loop {
        reap_zombies(main);
        let left = descendants(main);
        if left == 0 || Instant::now() >= deadline {
            return left;
        }
        thread::sleep(PAUSE);
    }
}

/// The number of living descendants besides `main`.
pub(super) fn descendants(main: Pid) -> u32 {
    let table = processes().unwrap_or_default();
    let mut family = BTreeSet::from([Pid::this().as_raw()]);
    let mut size = 0;
    // Children may stand before their parents in the table, so go over it until nothing is added.
    while size != family.len() {
        size = family.len();
        let born = table.iter().filter(|process| family.contains(&process.parent.as_raw()));
        let born: Vec<i32> = born.map(|process| process.pid.as_raw()).collect();
        family.extend(born);
    }
    let own = [main, Pid::this()];
    let alive = table.iter().filter(|process| !process.is_zombie && !own.contains(&process.pid));
    u32::try_from(alive.filter(|process| family.contains(&process.pid.as_raw())).count()).unwrap_or(u32::MAX)
}

/// Kills and reaps until there is no child left. `main` must have been reaped, or be meant to die.
pub(super) fn sweep(expected: u32) -> Swept {
    let deadline = Instant::now() + SWEEP_LIMIT;
    let mut killed = BTreeSet::new();
    loop {
        if !reap_all() {
            let found = u32::try_from(killed.len()).unwrap_or(u32::MAX);
            return Swept { killed: found.max(expected), survivors: 0 };
        }
        for child in children().into_iter().filter(|child| !child.is_zombie) {
            if kill(child.pid, Signal::SIGKILL).is_ok() {
                killed.insert(child.pid.as_raw());
            }
        }
        if Instant::now() >= deadline {
            let survivors = descendants(Pid::this());
            let found = u32::try_from(killed.len()).unwrap_or(u32::MAX).max(expected);
            return Swept { killed: found.saturating_sub(survivors), survivors };
        }
        thread::sleep(PAUSE);
    }
}

/// Reaps all that has ended. Returns whether any child is left.
fn reap_all() -> bool {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return true,
            Err(Errno::ECHILD) => return false,
            // EINVAL: one was reaped that an unknown (real-time) signal had ended.
            Ok(_) | Err(_) => {}
        }
    }
}
