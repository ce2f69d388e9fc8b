//! How commands end, and what is kept of their output.

use std::future::pending;
use std::time::{Duration, Instant};

use checkrein_shared::process::{Command, Ending, Finished, Output, Supervisor};

use crate::support::{Bench, PATH, Test, block_on, eventually, is_alive, run, tests};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        a_command_that_succeeds_leaves_its_output_and_nothing_else,
        exit_codes_and_signals_are_told_apart,
        a_command_that_ignores_sigterm_is_killed_after_its_grace,
        a_command_that_heeds_sigterm_may_tidy_up,
        a_cancelled_command_ends_and_says_so,
        a_dropped_run_kills_its_command,
        output_is_kept_byte_for_byte,
        output_beyond_the_cap_is_counted_and_both_ends_are_kept,
        both_streams_in_one_file_keep_their_order,
        a_command_sees_exactly_the_given_environment,
        the_environment_of_the_caller_is_nowhere_in_reach_of_the_supervisor,
        a_command_reads_its_input_file,
        arguments_and_paths_need_not_be_text,
    ]
}

fn a_command_that_succeeds_leaves_its_output_and_nothing_else() {
    let bench = Bench::new();
    let finished = bench.sh("echo out; echo err >&2; pwd");
    assert!(finished.ending.is_success(), "{finished:?}");
    let folder = bench.path("stdout").parent().unwrap().canonicalize().unwrap();
    assert_eq!(bench.text("stdout"), format!("out\n{}\n", folder.display()));
    assert_eq!(bench.text("stderr"), "err\n");
    assert_eq!((finished.leftovers_killed, finished.survivors), (0, 0));
    assert_eq!(finished.confinement, "none: not asked for");
}

fn exit_codes_and_signals_are_told_apart() {
    let bench = Bench::new();
    assert_eq!(bench.sh("exit 7").ending, Ending::Exited(7));
    assert_eq!(bench.sh("exit 137").ending, Ending::Exited(137));
    assert_eq!(bench.sh("kill -KILL $$").ending, Ending::Signalled(9));
    // A real-time signal, for which the usual tables have no name.
    assert_eq!(bench.sh("kill -40 $$").ending, Ending::Signalled(40));
}

fn a_command_that_ignores_sigterm_is_killed_after_its_grace() {
    let mut bench = Bench::new();
    bench.limits.time = Duration::from_millis(1500);
    let started_at = Instant::now();
    let finished = bench.sh("trap '' TERM; echo $$ > pids; sleep 999 & echo $! >> pids; wait; sleep 999");
    assert_eq!(finished.ending, Ending::TimedOut);
    assert!(finished.duration() >= bench.limits.time + bench.limits.grace, "{finished:?}");
    assert!(started_at.elapsed() < Duration::from_secs(20));
    assert!(bench.pids("pids").into_iter().all(|pid| !is_alive(pid)));
}

/// Runs a script and cancels it as soon as it has made the file `ready`.
fn cancel_when_ready(bench: &Bench, script: &str) -> Finished {
    let is_ready = async {
        while !bench.path("ready").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    block_on(bench.script(script).run(&Supervisor::current_exe(), is_ready)).unwrap()
}

fn a_command_that_heeds_sigterm_may_tidy_up() {
    let mut bench = Bench::new();
    bench.limits.grace = Duration::from_secs(30);
    let finished = cancel_when_ready(&bench, "trap 'echo tidy; exit 3' TERM; echo > ready; sleep 999 & wait");
    assert_eq!(finished.ending, Ending::Cancelled);
    assert_eq!(bench.text("stdout"), "tidy\n");
    assert!(finished.duration() < Duration::from_secs(20), "it need not wait for the whole grace");
}

fn a_cancelled_command_ends_and_says_so() {
    let bench = Bench::new();
    let finished = cancel_when_ready(&bench, "trap '' TERM; echo $$ > pids; echo > ready; sleep 999; sleep 999");
    assert_eq!(finished.ending, Ending::Cancelled);
    assert!(bench.pids("pids").into_iter().all(|pid| !is_alive(pid)));
}

fn a_dropped_run_kills_its_command() {
    let bench = Bench::new();
    let command = bench.script("sleep 999 & echo $! > pids; echo $$ >> pids; mv pids running; sleep 999");
    block_on(async {
        let supervisor = Supervisor::current_exe();
        let running = async {
            while !bench.path("running").exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            result = command.run(&supervisor, pending()) => panic!("ended by itself: {result:?}"),
            () = running => {}
        }
    });
    let pids = bench.pids("running");
    eventually("the dropped command dies", || pids.iter().all(|pid| !is_alive(*pid)));
}

fn output_is_kept_byte_for_byte() {
    let bench = Bench::new();
    let finished = bench.sh(r"printf '\360\000\033[31m\377\r\n'");
    assert_eq!(bench.read("stdout"), b"\xf0\0\x1b[31m\xff\r\n");
    assert_eq!((finished.stdout.bytes_kept, finished.stdout.bytes_dropped, finished.stdout.gap_at), (10, 0, None));
}

fn output_beyond_the_cap_is_counted_and_both_ends_are_kept() {
    let mut bench = Bench::new();
    bench.limits.output_bytes_max = 1000;
    let finished = bench.sh("echo first; head -c 10000000 /dev/zero; echo last");
    assert!(finished.ending.is_success());
    let stdout = finished.stdout;
    assert_eq!((stdout.bytes_kept, stdout.bytes_dropped, stdout.gap_at), (1000, 10_000_011 - 1000, Some(500)));
    let content = bench.read("stdout");
    assert!(content.len() == 1000 && content.starts_with(b"first\n") && content.ends_with(b"\0last\n"));
}

fn both_streams_in_one_file_keep_their_order() {
    let bench = Bench::new();
    let script = "for n in 1 2 3 4 5; do echo out $n; echo err $n >&2; done";
    let output = Output::Merged(bench.path("both"));
    let command = Command::new(["sh", "-c", script], bench.path(""), output, bench.limits).env("PATH", PATH);
    let finished = run(&command).unwrap();
    let expected: String = (1..=5).map(|n| format!("out {n}\nerr {n}\n")).collect();
    assert_eq!(bench.text("both"), expected);
    assert!(finished.stderr.is_none());
}

fn a_command_sees_exactly_the_given_environment() {
    let bench = Bench::new();
    run(&bench.command(&["env"]).env("GIVEN", "yes")).unwrap();
    assert_eq!(bench.text("stdout"), format!("GIVEN=yes\nPATH={PATH}\n"));
}

fn the_environment_of_the_caller_is_nowhere_in_reach_of_the_supervisor() {
    let bench = Bench::new();
    assert!(std::env::vars_os().count() > 0, "a test of nothing otherwise");
    let finished =
        bench.sh("cat /proc/self/environ; echo; cat /proc/$PPID/environ /proc/$PPID/cmdline; ls /proc/self/fd | wc -l");
    let stdout = bench.text("stdout");
    for (name, _) in std::env::vars().filter(|(name, _)| !["PATH", "PWD", "_", "SHLVL"].contains(&name.as_str())) {
        assert!(!stdout.contains(&format!("{name}=")), "{name} in {stdout:?} {finished:?}");
    }
    // The three streams, and the folder that `ls` itself reads.
    assert!(stdout.trim_end().ends_with('4'), "{stdout:?}");
}

fn a_command_reads_its_input_file() {
    let bench = Bench::new();
    std::fs::write(bench.path("request"), b"\x00\xffrequest").unwrap();
    run(&bench.command(&["cat"]).stdin(bench.path("request"))).unwrap();
    assert_eq!(bench.read("stdout"), b"\x00\xffrequest");
    run(&bench.command(&["cat"])).unwrap();
    assert_eq!(bench.read("stdout"), b"", "no input without a file");
}

fn arguments_and_paths_need_not_be_text() {
    use std::os::unix::ffi::OsStringExt as _;
    let bench = Bench::new();
    let odd = std::ffi::OsString::from_vec(b"caf\xe9 \n'\"".to_vec());
    let folder = bench.path("").join(&odd);
    std::fs::create_dir(&folder).unwrap();
    let argv = ["printf".into(), "%s".into(), odd.clone()];
    let output = Output::Merged(folder.join(&odd));
    run(&Command::new(argv, &folder, output, bench.limits).env("PATH", PATH)).unwrap();
    assert_eq!(std::fs::read(folder.join(&odd)).unwrap(), odd.into_vec());
}
