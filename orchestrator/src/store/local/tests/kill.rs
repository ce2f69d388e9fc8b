//! A process that is really killed, while it commits as fast as it can.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use super::*;
use crate::store::verify;

pub(super) const FOLDER: &str = "CHECKREIN_TEST_KILL_FOLDER";
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

/// What the child said: the newest version of each task.
#[derive(Debug, Default)]
pub(super) struct Acknowledged([u64; 4]);

impl Acknowledged {
    /// Takes a line; says whether it is an acknowledgement. A line that was cut short is none.
    pub(super) fn note(&mut self, line: &str) -> bool {
        let Some((_, rest)) = line.split_once("acknowledged ") else { return false };
        let Some((writer, version)) = rest.split_once(' ') else { return false };
        let (Ok(writer), Ok(version)) = (writer.parse::<usize>(), version.parse::<u64>()) else { return false };
        self.0[writer] = self.0[writer].max(version);
        true
    }

    /// How many records were acknowledged.
    pub(super) fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Every one of them is there.
    pub(super) async fn check(&self, store: &LocalStore) {
        for (writer, version) in self.0.iter().enumerate() {
            let name = task(&format!("t-{writer}"));
            let found = store.load(&name).await.unwrap().map_or(0, |stored| stored.version);
            assert!(found >= *version, "task {writer}: {version} was acknowledged, {found} is there");
            let events = store.events(&name, 0, usize::try_from(found).unwrap()).await.unwrap();
            assert_eq!(events.len() as u64, found);
        }
    }
}

#[tokio::test]
async fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = Acknowledged::default();
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
        while left > 0 {
            let line = lines.next().expect("the child ended by itself").unwrap();
            left -= u64::from(acknowledged.note(&line));
        }
        child.kill().unwrap();
        // What it still managed to say before the kill counts as well, but for a line cut short.
        let mut said: Vec<String> = lines.map_while(Result::ok).collect();
        said.pop();
        for line in &said {
            acknowledged.note(line);
        }
        child.wait().unwrap();
        let store = open(folder.path());
        acknowledged.check(&store).await;
        drop(store);
        verify(folder.path()).unwrap();
    }
    assert!(acknowledged.count() > 300);
}
