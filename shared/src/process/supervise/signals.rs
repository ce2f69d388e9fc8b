//! Which signals reach the supervisor, and how it signals its command.

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::unistd::{Pid, getpgid};

/// Lets the signals that stop a service pass by: whoever stops the caller must not thereby free the command. The end
/// of the caller is noticed, and ends the supervisor in good order.
pub(super) fn outlive_signals() {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2] {
        set.add(signal);
    }
    // Threads started later inherit the mask.
    set.thread_block().expect("blocking ordinary signals is always allowed");
}

/// Undoes whatever mask this thread has inherited; a command starts with none.
pub(super) fn accept_all_signals() {
    SigSet::empty().thread_set_mask().expect("an empty mask is always allowed");
}

/// Signals the command and its process group. The command must not have been reaped yet: until then neither number can
/// belong to anybody else.
pub(super) fn signal_command(main: Pid, signal: Signal) {
    let group = killpg(main, signal);
    // Not twice: to many programs a second SIGTERM means to drop everything and go at once.
    let alone = if getpgid(Some(main)) == Ok(main) { Ok(()) } else { kill(main, signal) };
    for outcome in [group, alone] {
        // EPERM: it became another user's. The sweep counts it as a survivor.
        debug_assert!(matches!(outcome, Ok(()) | Err(Errno::ESRCH | Errno::EPERM)), "{outcome:?}");
    }
}
