//! What a task is given in confidence appears nowhere.

use checkrein_shared::records::AttemptOutcome;

use crate::support::{Bench, WorkerOptions, prompt, sh, task_of, text_of};
use crate::tests;

tests![
    a_secret_that_an_agent_prints_and_writes_is_in_no_record_and_no_evidence,
    commands_see_nothing_of_the_workers_environment,
    the_workers_own_memory_and_folders_are_out_of_reach,
];

const SECRET: &str = "hunter2-is-not-enough-77";

async fn a_secret_that_an_agent_prints_and_writes_is_in_no_record_and_no_evidence() {
    let bench = Bench::new(&[("a.txt", "a\n"), (".gitignore", "ignored/\n")]).await;
    let agent = bench.agents.script(
        "leak.sh",
        r#"printf 'key is %s' "${API_KEY%77}"; sleep 0.05; echo 77
        printf '%s' "$API_KEY" | base64
        echo "$API_KEY" > leaked.txt; echo "$API_KEY" > .env
        printf '{"version":1,"claims":[{"text":"used %s"}],"open_issues":["rotate %s"]}' "$API_KEY" "$API_KEY" > "$CHECKREIN_RESULT"
        "#,
    );
    let command: Vec<&str> = agent.iter().map(String::as_str).collect();
    let spec = task_of(text_of(&bench.project), Some(&command), &["API_KEY"], vec![prompt("fix", &[], "Leak it.")]);
    let environment = vec![("API_KEY", SECRET)];
    let worker = bench.worker(WorkerOptions { environment, ..Default::default() });
    let link = bench.gate(&bench.task(&spec).await).await;
    worker.stop().await;

    let record = serde_json::to_string(&link.checkpoint).unwrap();
    assert!(!record.contains(SECRET), "{record}");
    let encoded = "aHVudGVyMi1pcy1ub3QtZW5vdWdoLTc3";
    for (reference, bytes) in bench.evidence(Some(link.checkpoint.evidence.index)).await {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(SECRET) && !text.contains(encoded), "{reference}: {text}");
    }
    let log = bench.text(link.checkpoint.evidence.index, "log:fix-e1").await;
    assert!(log.starts_with("key is [redacted:value.API_KEY]\n"), "{log}");
    let touched = bench.touched(&link.checkpoint.changesets.proposed).await;
    assert_eq!(touched, [".env", "leaked.txt"], "both are seen; of `.env` only that it is there");
    let mut holders = Vec::new();
    let mut open = vec![bench.dir.path().join("data")];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(SECRET) {
                holders.push(path.strip_prefix(bench.dir.path().join("data")).unwrap().to_owned());
            }
        }
    }
    holders.sort();
    // The raw tree blob of `leaked.txt`, and the file that only its worker keeps until it is applied.
    assert_eq!(holders.len(), 2, "{holders:?}");
    assert!(holders[0].starts_with("blobs") && holders[1].starts_with("cache-one/kept"), "{holders:?}");
}

async fn commands_see_nothing_of_the_workers_environment() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let agent = bench.agents.script("env.sh", "env | cut -d= -f1 | sort | tr '\\n' ' '; exit 1");
    let command: Vec<&str> = agent.iter().map(String::as_str).collect();
    let steps = vec![prompt("ask", &[], "x"), sh("run", &[], "env | cut -d= -f1 | sort | tr '\\n' ' '; exit 1")];
    let spec = task_of(text_of(&bench.project), Some(&command), &["API_KEY"], steps);
    let environment = vec![("API_KEY", SECRET), ("CHECKREIN_TOKEN", "token"), ("AWS_SECRET", "x")];
    let worker = bench.worker(WorkerOptions { environment, ..Default::default() });
    let mut job = bench.task(&spec).await;
    let mut logs = Vec::new();
    for step in ["ask", "run"] {
        job.kind =
            checkrein_shared::records::JobKind::Step { step: step.parse().unwrap(), conversation: Default::default() };
        let AttemptOutcome::StepFailed { evidence_index, .. } = bench.outcome(&job).await else { panic!("it fails") };
        logs.push(bench.text(evidence_index.unwrap(), &format!("log:{step}-e{}", job.epoch)).await);
        job = bench.next(&job, job.kind.clone());
    }
    worker.stop().await;
    let own =
        "CHECKREIN_ATTEMPT CHECKREIN_INSTRUCTION CHECKREIN_RESULT CHECKREIN_RUN_STATE CHECKREIN_STEP CHECKREIN_TASK";
    assert_eq!(logs[0], format!("API_KEY {own} HOME LANG PATH PWD TERM TMPDIR "));
    assert_eq!(logs[1], "CHECKREIN_ATTEMPT CHECKREIN_STEP CHECKREIN_TASK HOME LANG PATH PWD TERM TMPDIR ");
}

async fn the_workers_own_memory_and_folders_are_out_of_reach() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let blobs = bench.dir.path().join("data/blobs");
    let script = format!(
        "cat /proc/$PPID/environ; cat /proc/self/environ | tr '\\0' '\\n' | grep -c SECRET; ls {}; ls {}; cat {}/a.txt; exit 1",
        blobs.display(),
        bench.dir.path().join("data").display(),
        bench.project.display(),
    );
    let spec = task_of(text_of(&bench.project), None, &[], vec![sh("spy", &[], &script)]);
    let worker = bench.worker(WorkerOptions { environment: vec![("SECRET", SECRET)], ..Default::default() });
    let job = bench.task(&spec).await;
    let AttemptOutcome::StepFailed { evidence_index, .. } = bench.outcome(&job).await else { panic!("it fails") };
    worker.stop().await;
    let log = bench.text(evidence_index.unwrap(), "log:spy-e1").await;
    assert!(!log.contains(SECRET), "{log}");
    // Where the kernel can't confine, the checkpoint says so, and this test has nothing to look at.
    let confined = log.contains("Permission denied");
    assert!(!confined || !log.lines().any(|line| line == "a"), "the target can't be read: {log}");
}
