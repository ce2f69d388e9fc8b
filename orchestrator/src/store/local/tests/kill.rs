//! A process that is really killed, while it commits as fast as it can.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use super::*;
use crate::store::verify;

const FOLDER: &str = "CHECKREIN_TEST_KILL_FOLDER";
const KILLS: u64 = 8;

/// The child: commits until it is killed, and says what was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of the test below"]
async fn child() {
    let folder = std::env::var(FOLDER).unwrap();
    let store = Arc::new(LocalStore::open(folder, &Options { segment_bytes_max: 40_000, ..options() }).unwrap());
    let mut writers = Vec::new();
    for writer in 0..4 {
        let store = Arc::clone(&store);
        writers.push(tokio::spawn(async move {
            let name = task(&format!("t-{writer}"));
            let mut version = store.load(&name).await.unwrap().map_or(0, |stored| stored.version);
            // Only a failure ends this, and then the parent misses its lines.
            while version < u64::MAX {
                let messages = vec![message(&format!("m-{writer}-{version}"))];
                let commit = Commit { messages, timers: vec![set("lease", 5_000)], ..commit(version) };
                let Ok(committed) = store.commit(&name, version, commit).await else { return };
                version = committed.version;
                writeln!(std::io::stdout(), "acknowledged {writer} {version}").unwrap();
                let delivered = format!("m-{writer}-{}", version - 1).parse().unwrap();
                store.mark_delivered(vec![delivered], at(2_000)).await.unwrap();
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
}

#[tokio::test]
async fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = [0u64; 4];
    for kill in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::local::tests::kill::child", "--ignored", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut left = 20 + kill * 17;
        let mut count = |line: &str| {
            let Some((_, rest)) = line.split_once("acknowledged ") else { return false };
            let (writer, version) = rest.split_once(' ').unwrap();
            let (writer, version): (usize, u64) = (writer.parse().unwrap(), version.parse().unwrap());
            acknowledged[writer] = acknowledged[writer].max(version);
            true
        };
        while left > 0 {
            let line = lines.next().expect("the child ended by itself").unwrap();
            left -= u64::from(count(&line));
        }
        child.kill().unwrap();
        // What it still managed to say before the kill counts as well, but for a line cut short.
        for line in lines.map_while(Result::ok).filter(|line| line.split(' ').count() == 3) {
            if line.starts_with("acknowledged ") && line.rsplit(' ').next().is_some_and(|version| !version.is_empty()) {
                count(&line);
            }
        }
        child.wait().unwrap();
        let store = open(folder.path());
        for (writer, version) in acknowledged.iter().enumerate() {
            let stored = store.load(&task(&format!("t-{writer}"))).await.unwrap();
            let found = stored.map_or(0, |stored| stored.version);
            assert!(found >= *version, "task {writer}: {version} was acknowledged, {found} is there");
        }
        drop(store);
        verify(folder.path()).unwrap();
    }
    assert!(acknowledged.iter().sum::<u64>() > 300);
}
