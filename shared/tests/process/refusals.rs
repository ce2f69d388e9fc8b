//! Commands that can't be started are refused with what, where and why.

use std::future::pending;
use std::os::unix::fs::PermissionsExt as _;

use checkrein_shared::process::{Command, Error, Output, Refusal, Supervisor};

use crate::support::{Bench, PATH, Test, block_on, run, tests};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        a_missing_program_is_named_with_the_path_that_was_searched,
        a_program_is_never_taken_from_the_working_directory_by_its_bare_name,
        what_can_not_be_executed_is_refused_with_the_reason,
        a_missing_working_directory_is_not_mistaken_for_a_missing_program,
        files_that_can_not_be_opened_are_named,
        what_no_program_can_receive_is_refused,
        a_missing_supervisor_is_an_error,
        a_program_that_is_no_supervisor_is_an_error,
    ]
}

fn refusal(command: &Command) -> Refusal {
    match run(command) {
        Err(Error::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn a_missing_program_is_named_with_the_path_that_was_searched() {
    let bench = Bench::new();
    let text = refusal(&bench.command(&["no-such-program"])).to_string();
    assert!(text.contains("`no-such-program`") && text.contains(PATH), "{text}");
    let text = refusal(&bench.command(&["./no-such-program"])).to_string();
    assert!(text.contains(bench.path("").to_str().unwrap().trim_end_matches('/')), "{text}");
    assert_eq!(refusal(&bench.command(&[])), Refusal::Empty);
    assert_eq!(refusal(&bench.command(&[""])), Refusal::Empty);
}

fn a_program_is_never_taken_from_the_working_directory_by_its_bare_name() {
    let bench = Bench::new();
    write_script(&bench, "planted", "#!/bin/sh\n", 0o755);
    for path in ["", ".", ":/usr/bin", "/usr/bin:"] {
        let command = bench.command(&["planted"]).env("PATH", path);
        assert!(matches!(refusal(&command), Refusal::NotFound { .. }), "PATH={path}");
    }
    assert!(run(&bench.command(&["./planted"])).unwrap().ending.is_success());
}

fn what_can_not_be_executed_is_refused_with_the_reason() {
    let bench = Bench::new();
    write_script(&bench, "plain", "#!/bin/sh\n", 0o644);
    write_script(&bench, "headless", "echo hello\n", 0o755);
    write_script(&bench, "orphaned", "#!/no/such/interpreter\n", 0o755);
    for (program, reason) in
        [("./plain", "permission"), ("./headless", "`#!`"), ("./orphaned", "interpreter"), ("/usr", "directory")]
    {
        let refusal = refusal(&bench.command(&[program]));
        assert!(matches!(refusal, Refusal::NotExecutable { .. }), "{program}: {refusal:?}");
        assert!(refusal.to_string().contains(reason), "{program}: {refusal}");
    }
}

fn a_missing_working_directory_is_not_mistaken_for_a_missing_program() {
    let bench = Bench::new();
    std::fs::write(bench.path("file"), "").unwrap();
    for folder in [bench.path("gone"), bench.path("file"), "relative".into()] {
        let command = Command::new(["true"], &folder, Output::Merged(bench.path("out")), bench.limits);
        let refusal = refusal(&command);
        assert!(matches!(refusal, Refusal::WorkingDirectory { .. }), "{refusal:?}");
        assert!(refusal.to_string().contains(folder.to_str().unwrap()), "{refusal}");
    }
}

fn files_that_can_not_be_opened_are_named() {
    let bench = Bench::new();
    let refused = refusal(&bench.command(&["true"]).stdin(bench.path("gone")));
    assert!(matches!(refused, Refusal::Stream { ref stream, .. } if stream == "input"), "{refused:?}");
    let nowhere = Output::Merged(bench.path("gone").join("out"));
    let refused = refusal(&Command::new(["true"], bench.path(""), nowhere, bench.limits));
    assert!(matches!(refused, Refusal::Stream { ref stream, .. } if stream == "output"), "{refused:?}");
}

fn what_no_program_can_receive_is_refused() {
    let bench = Bench::new();
    // One argument may have 128 KiB.
    let long = "x".repeat(200 << 10);
    for command in [
        bench.command(&["true", "a\0b"]),
        bench.command(&["true"]).env("A=B", "1"),
        bench.command(&["true"]).env("", "1"),
        bench.command(&["true"]).env("A", "1\0"),
        bench.command(&["true", &long]),
    ] {
        let refused = refusal(&command);
        assert!(matches!(refused, Refusal::Unpassable { .. }), "{refused:?}");
    }
    let huge = "x".repeat(13 << 20);
    assert!(matches!(run(&bench.command(&["true", &huge])), Err(Error::TooLarge { .. })));
}

fn a_missing_supervisor_is_an_error() {
    let bench = Bench::new();
    let outcome = block_on(bench.command(&["true"]).run(&Supervisor::new("/no/such/binary"), pending()));
    assert!(matches!(outcome, Err(Error::Supervisor { .. })), "{outcome:?}");
}

fn a_program_that_is_no_supervisor_is_an_error() {
    let bench = Bench::new();
    for program in ["/bin/false", "/bin/echo"] {
        let outcome = block_on(bench.command(&["true"]).run(&Supervisor::new(program), pending()));
        assert!(matches!(outcome, Err(Error::NoReport { .. })), "{outcome:?}");
    }
}

fn write_script(bench: &Bench, name: &str, text: &str, mode: u32) {
    std::fs::write(bench.path(name), text).unwrap();
    std::fs::set_permissions(bench.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
}
