//! Nothing that a command started outlives it, and nothing else is touched.

use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use checkrein_shared::process::{Ending, Error};

use crate::support::{Bench, CALLER, Test, block_on, eventually, is_alive, run, tests};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        a_background_process_that_holds_the_output_open_does_not_hold_up_the_run,
        daemons_with_a_session_of_their_own_die_with_their_command,
        a_chain_of_orphans_in_sessions_of_their_own_is_peeled_off,
        helpers_that_end_by_themselves_may_finish_their_output,
        daemons_die_at_the_time_limit_too,
        a_command_that_leaves_its_process_group_is_killed_all_the_same,
        many_orphans_do_not_disturb_the_command,
        two_commands_at_once_leave_each_other_alone,
        nothing_survives_the_death_of_the_caller,
        a_supervisor_killed_by_its_own_command_is_an_error_and_its_session_dies,
        files_that_the_caller_inherited_do_not_reach_the_command,
    ]
}

fn all_dead(pids: &[i32]) -> bool {
    pids.iter().all(|pid| !is_alive(*pid))
}

fn a_background_process_that_holds_the_output_open_does_not_hold_up_the_run() {
    let bench = Bench::new();
    let started_at = Instant::now();
    let finished = bench.sh("sleep 999 & echo $! > pids; echo done");
    assert_eq!(finished.ending, Ending::Exited(0));
    assert_eq!(finished.leftovers_killed, 1);
    assert!(!finished.stdout.still_open);
    assert_eq!(bench.text("stdout"), "done\n");
    assert!(started_at.elapsed() < Duration::from_secs(20));
    assert!(all_dead(&bench.pids("pids")));
}

fn daemons_with_a_session_of_their_own_die_with_their_command() {
    let bench = Bench::new();
    // The outer shell waits until both have written their numbers: one by `setsid`, one by a double fork as well.
    let finished = bench.sh("mkfifo ready
         setsid sh -c 'echo $$ > one; echo > first; exec sleep 999' &
         (setsid sh -c '(echo $$ > two; echo > second; exec sleep 999) &' &)
         read x < first; read x < second; cat one two > pids; exit 5");
    assert_eq!(finished.ending, Ending::Exited(5));
    assert!(finished.leftovers_killed >= 2, "{finished:?}");
    assert_eq!(finished.survivors, 0);
    assert!(all_dead(&bench.pids("pids")));
}

fn a_chain_of_orphans_in_sessions_of_their_own_is_peeled_off() {
    let bench = Bench::new();
    std::fs::write(
        bench.path("nest"),
        "echo $$ >> pids\nif [ $1 -gt 0 ]; then setsid sh nest $(($1 - 1)) & else echo > ready; fi\nwhile :; do sleep 999; done\n",
    )
    .unwrap();
    let finished = bench.sh("mkfifo ready; setsid sh nest 12 & read x < ready");
    let pids = bench.pids("pids");
    assert_eq!(pids.len(), 13);
    assert!(finished.leftovers_killed >= 13, "{finished:?}");
    assert!(all_dead(&pids));
}

fn helpers_that_end_by_themselves_may_finish_their_output() {
    let bench = Bench::new();
    let finished = bench.sh("mkfifo pipe; (cat < pipe; echo flushed) & exec > pipe; echo early");
    assert_eq!(bench.text("stdout"), "early\nflushed\n");
    assert_eq!(finished.leftovers_killed, 0);
}

fn daemons_die_at_the_time_limit_too() {
    let mut bench = Bench::new();
    bench.limits.time = Duration::from_millis(1500);
    let finished = bench.sh("setsid sh -c 'trap \"\" TERM; echo $$ > pids; while :; do sleep 999; done' & sleep 999");
    assert_eq!(finished.ending, Ending::TimedOut);
    assert!(all_dead(&bench.pids("pids")));
    assert!(finished.leftovers_killed >= 1, "{finished:?}");
}

fn a_command_that_leaves_its_process_group_is_killed_all_the_same() {
    let mut bench = Bench::new();
    bench.limits.time = Duration::from_millis(1500);
    // A shell with job control puts each job into a group of its own.
    let finished = bench.sh("set -m; trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > pids; sleep 999; sleep 999'");
    assert_eq!(finished.ending, Ending::TimedOut);
    assert!(all_dead(&bench.pids("pids")));
}

fn many_orphans_do_not_disturb_the_command() {
    let bench = Bench::new();
    // One of the orphans dies of a real-time signal.
    let finished =
        bench.sh("for n in 1 2 3 4 5 6 7 8 9; do (true &); (sh -c 'kill -40 $$' &); done; sleep 0.2; echo end; exit 4");
    assert_eq!(finished.ending, Ending::Exited(4));
    assert_eq!(bench.text("stdout"), "end\n");
    assert_eq!(finished.leftovers_killed, 0);
}

fn two_commands_at_once_leave_each_other_alone() {
    let (short, long) = (Bench::new(), Bench::new());
    let wait = format!(
        "mkfifo go; setsid sh -c 'read x < go; echo daemon lives' & echo > '{}'; wait; echo both live",
        short.path("go").display()
    );
    let leave = "mkfifo go; setsid sleep 999 & echo $! > pids; read x < go";
    // The second needs the first to run, the first ends while the second's daemon still runs.
    let supervisor = checkrein_shared::process::Supervisor::current_exe();
    let (first, second) = (short.script(leave), long.script(&wait));
    eventually("the fifo is there", || {
        let _ = nix::unistd::mkfifo(&short.path("go"), nix::sys::stat::Mode::S_IRWXU);
        short.path("go").exists()
    });
    let release = long.path("go");
    block_on(async {
        let second = second.run(&supervisor, std::future::pending());
        let first = async {
            let finished = first.run(&supervisor, std::future::pending()).await.unwrap();
            assert!(finished.leftovers_killed >= 1, "{finished:?}");
            tokio::task::spawn_blocking(move || std::fs::write(release, "\n")).await.unwrap().unwrap();
        };
        let (second, ()) = tokio::join!(second, first);
        assert!(second.unwrap().ending.is_success());
    });
    assert!(all_dead(&short.pids("pids")));
    assert_eq!(long.text("stdout"), "daemon lives\nboth live\n");
}

fn nothing_survives_the_death_of_the_caller() {
    let bench = Bench::new();
    let script = "echo $$ > pids; echo $PPID >> pids; sleep 999 & echo $! >> pids
        setsid sh -c 'trap \"\" TERM HUP; echo $$ >> pids; mv pids running; while :; do sleep 999; done' & sleep 999";
    let mut caller = Process::new(std::env::current_exe().unwrap())
        .arg(CALLER)
        .arg(bench.path(""))
        .arg(script)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the command runs", || bench.path("running").exists());
    let pids = bench.pids("running");
    assert!(pids.len() == 4 && pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    caller.kill().unwrap();
    caller.wait().unwrap();
    eventually("supervisor, command and daemon die", || all_dead(&pids));
}

fn a_supervisor_killed_by_its_own_command_is_an_error_and_its_session_dies() {
    let bench = Bench::new();
    let outcome = run(&bench.script("sleep 999 & echo $! > pids; echo $$ >> pids; kill -9 $PPID; sleep 999"));
    assert!(matches!(outcome, Err(Error::NoReport { .. })), "{outcome:?}");
    let pids = bench.pids("pids");
    eventually("the rest of the session dies", || all_dead(&pids));
}

fn files_that_the_caller_inherited_do_not_reach_the_command() {
    let bench = Bench::new();
    let caller = std::env::current_exe().unwrap();
    std::fs::write(bench.path("private"), "private").unwrap();
    let script = format!(
        "exec 7< '{}'; exec '{}' {CALLER} '{}' 'cat <&7; ls -l /proc/self/fd'",
        bench.path("private").display(),
        caller.display(),
        bench.path("").display(),
    );
    assert!(Process::new("sh").args(["-c", &script]).status().unwrap().success());
    let output = bench.text("output");
    assert!(!output.contains("private"), "{output}");
}
