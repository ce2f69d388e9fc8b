//! How verifiers run.

use std::io::Write as _;

use checkrein_shared::records::Judgement;

use super::bench::{Bench, Test, of, tests};
use super::task::{BUG, FIX, Task};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        a_verifier_sees_neither_the_environment_nor_the_network_nor_the_data,
        a_failure_that_passes_the_second_time_is_flaky_and_no_pass,
        a_pass_is_remembered_and_a_failure_is_not,
        a_verifier_that_takes_too_long_fails,
        what_passed_before_and_fails_now_is_a_regression,
        carried_paths_come_from_the_target,
        what_a_verifier_leaves_behind_does_not_stay,
        a_rust_project_is_tested_with_the_users_toolchain,
    ]
}

fn verifier(script: &str, more: &str) -> String {
    let run = serde_json::to_string(&["sh", "-c", script]).unwrap();
    format!("version: 1\nverifiers:\n  unit: {{run: {run}, timeout: 20s, network: none{more}}}\n")
}

fn with(script: &str) -> Task {
    Task::on(&BUG).write(FIX.0, FIX.1).policy(&verifier(script, ""))
}

async fn a_verifier_sees_neither_the_environment_nor_the_network_nor_the_data() {
    let mut bench = Bench::new().await;
    std::fs::write(bench.target.join("private"), "x").unwrap();
    // Cargo sets this one for every test binary.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let (target, data) = (bench.target.display(), bench.blobs.root().display());
    let script = format!(
        "[ -z \"$CARGO_MANIFEST_DIR\" ] || echo environment\n\
         grep -Eq '^ *(eth|en|wl|tun|veth)' /proc/net/dev && echo network\n\
         ls {target} >/dev/null 2>&1 && echo target; ls {data} >/dev/null 2>&1 && echo data\n\
         echo x > add.sh; echo x > $HOME/x; echo x > $TMPDIR/x\n"
    );
    let verdict = bench.review(&with(&script)).await;
    assert_eq!(verdict.verdict, Judgement::Approved, "{verdict:#?}");
    let log = bench.log(&verdict).await;
    let (head, seen) = log.split_once("\n\n").unwrap();
    assert!(!seen.contains("environment"), "{log}");
    assert!(!seen.contains("network") || head.contains("NOT CUT OFF"), "{log}");
    assert!(!(seen.contains("target") || seen.contains("data")) || head.contains("confinement none"), "{log}");
    bench.stop().await;
}

async fn a_failure_that_passes_the_second_time_is_flaky_and_no_pass() {
    let mut bench = Bench::new().await;
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let path = fifo.clone();
    // Opening waits for a reader, so that each run reads one line.
    std::thread::spawn(move || {
        for word in ["fail", "pass"] {
            writeln!(std::fs::OpenOptions::new().write(true).open(&path).unwrap(), "{word}").unwrap();
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    });
    let verdict = bench.review(&with(&format!("read word < {}; [ $word = pass ]", fifo.display()))).await;
    assert_eq!(verdict.verdict, Judgement::ChangesRequired);
    assert!(of(&verdict, "verifiers")[0].claim.contains("flaky"), "{verdict:#?}");
    assert!(verdict.verifiers[0].flaky && !verdict.verifiers[0].ok);
    bench.stop().await;
}

async fn a_pass_is_remembered_and_a_failure_is_not() {
    let mut bench = Bench::new().await;
    let first = bench.review(&Task::on(&BUG).write(FIX.0, FIX.1)).await;
    let again = bench.review(&Task::on(&BUG).write(FIX.0, FIX.1).round(2)).await;
    assert_eq!(again.verdict, Judgement::Approved);
    assert_eq!(again.verifiers[0].run, first.verifiers[0].run);

    let failed = bench.review(&Task::on(&BUG).round(3)).await;
    let again = bench.review(&Task::on(&BUG).round(4)).await;
    assert_ne!(again.verifiers[0].run, failed.verifiers[0].run);
    bench.stop().await;
}

async fn a_verifier_that_takes_too_long_fails() {
    let mut bench = Bench::new().await;
    let policy = verifier("echo begun; sleep 60", "").replace("20s", "300ms");
    let verdict = bench.review(&Task::on(&BUG).write(FIX.0, FIX.1).policy(&policy)).await;
    assert_eq!(verdict.verdict, Judgement::ChangesRequired);
    assert!(of(&verdict, "verifiers")[0].claim.contains("time limit"));
    assert!(verdict.required_actions[0].contains("> begun"));
    bench.stop().await;
}

async fn what_passed_before_and_fails_now_is_a_regression() {
    let mut bench = Bench::new().await;
    let sound = [FIX, BUG[1]];
    let verdict = bench.review(&Task::on(&sound).write("add.sh", BUG[0].1)).await;
    assert_eq!(verdict.verdict, Judgement::ChangesRequired);
    assert!(of(&verdict, "regression")[0].claim.contains("passed at the base"), "{verdict:#?}");
    bench.stop().await;
}

async fn carried_paths_come_from_the_target() {
    let mut bench = Bench::new().await;
    std::fs::create_dir(bench.target.join("deps")).unwrap();
    std::fs::write(bench.target.join("deps/lib"), "from the target\n").unwrap();
    let task = with("")
        .policy(&verifier("grep target deps/lib && ! echo x 2>/dev/null >> deps/lib || [ -w / ]", ", carry: [deps]"));
    assert_eq!(bench.review(&task).await.verdict, Judgement::Approved);
    let task = with("").policy(&verifier("cat deps/lib", "")).round(2);
    assert_eq!(bench.review(&task).await.verdict, Judgement::ChangesRequired);
    assert_eq!(std::fs::read_to_string(bench.target.join("deps/lib")).unwrap(), "from the target\n");
    bench.stop().await;
}

async fn what_a_verifier_leaves_behind_does_not_stay() {
    let mut bench = Bench::new().await;
    let script = "mkdir -p a/b; touch a/b/c; chmod 000 a/b; chmod 000 a; (setsid sleep 300 &) ; exit 0";
    assert_eq!(bench.review(&with(script)).await.verdict, Judgement::Approved);
    // `stop` looks for what is left in the work folder.
    bench.stop().await;
}

async fn a_rust_project_is_tested_with_the_users_toolchain() {
    let mut bench = Bench::new().await;
    let task = Task::on(&[
        ("Cargo.toml", "[package]\nname = \"sample\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n"),
        ("lib.rs", "#[test]\nfn adds() { assert_eq!(1 + 1, 2); }\n"),
    ]);
    let policy = verifier("cargo test --offline --lib", "");
    let verdict = bench.review(&task.write("notes.md", "x\n").policy(&policy)).await;
    let log = bench.log(&verdict).await;
    assert_eq!(verdict.verdict, Judgement::Approved, "{log}");
    assert!(log.contains("1 passed"), "{log}");
    bench.stop().await;
}
