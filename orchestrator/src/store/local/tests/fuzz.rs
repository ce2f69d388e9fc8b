//! Files that were cut, flipped, doubled, blanked or lost, anywhere: an error that names it, or repair; never a
//! panic, never a silent loss, never a first run.
//!
//! `CHECKREIN_FUZZ_CASES` sets how many cases are tried.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use proptest::prelude::*;

use super::damage::copy;
use super::*;
use crate::store::rows::RowChange;
use crate::store::verify;

/// How many cases a usual test run tries.
const CASES: u32 = 48;

#[derive(Debug, Clone)]
enum Damage {
    Cut(prop::sample::Index),
    Flip(prop::sample::Index, u8),
    Double(prop::sample::Index, prop::sample::Index),
    Blank(prop::sample::Index, usize),
    Insert(prop::sample::Index, Vec<u8>),
    Remove,
}

impl Damage {
    fn apply(&self, path: &Path) {
        let Ok(mut bytes) = fs::read(path) else { return };
        let length = bytes.len();
        match self {
            Self::Cut(at) => bytes.truncate(at.index(length + 1)),
            Self::Flip(at, bits) if length > 0 => bytes[at.index(length)] ^= bits,
            Self::Double(from, to) if length > 0 => {
                let (from, to) = (from.index(length), to.index(length));
                let part = bytes[from.min(to)..from.max(to)].to_vec();
                bytes.splice(from.max(to)..from.max(to), part);
            }
            Self::Blank(at, count) if length > 0 => {
                let at = at.index(length);
                bytes[at..(at + count).min(length)].fill(0);
            }
            Self::Insert(at, more) => {
                drop(bytes.splice(at.index(length + 1)..at.index(length + 1), more.iter().copied()))
            }
            Self::Remove => return fs::remove_file(path).unwrap(),
            Self::Flip(..) | Self::Double(..) | Self::Blank(..) => {}
        }
        fs::remove_file(path).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let index = any::<prop::sample::Index>;
    let damage = prop_oneof![
        3 => index().prop_map(Damage::Cut),
        4 => (index(), 1..=255u8).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        2 => (index(), index()).prop_map(|(from, to)| Damage::Double(from, to)),
        2 => (index(), 1..3_000usize).prop_map(|(at, count)| Damage::Blank(at, count)),
        1 => (index(), prop::collection::vec(any::<u8>(), 1..40)).prop_map(|(at, more)| Damage::Insert(at, more)),
        1 => Just(Damage::Remove),
    ];
    prop::collection::vec(damage, 1..3)
}

/// Everything that readers can see; what is damaged says so.
async fn contents(store: &LocalStore) -> Result<String, Error> {
    let tasks = store.tasks(None, 99).await?;
    let rows = store.rows("effect", None, None, 999).await?;
    let pending = store.pending_messages(999).await?;
    let timers = store.due_timers(at(99_999), 999).await?;
    let events = store.events(&task("t-1"), 0, 999).await?;
    let records = store.records_after(0, 9_999).await?;
    Ok(format!("{tasks:?}\n{rows:?}\n{pending:?}\n{timers:?}\n{events:?}\n{records:?}"))
}

/// A store that was opened and closed twice; its content and its head.
struct Sample {
    folder: tempfile::TempDir,
    contents: String,
    head: Head,
}

static SAMPLE: LazyLock<Sample> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let running = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        for (from, to) in [(0, 25), (25, 40)] {
            let store = LocalStore::open(running.path(), &tiny()).unwrap();
            for version in from..to {
                let large = json!("x".repeat(if version % 7 == 0 { 5_000 } else { 5 }));
                let key = format!("k-{version}");
                let rows = vec![RowChange::Put { table: "effect".into(), key, value: large }];
                let messages = vec![message(&format!("m-{version}"))];
                let timers = vec![set(&format!("timer-{}", version % 3), 1_000 + i64::try_from(version).unwrap())];
                let name = task(["t-1", "t-2"][usize::from(version % 2 == 1)]);
                let commit = Commit { messages, timers, rows, ..commit(version) };
                store.commit(&name, version / 2, commit).await.unwrap();
            }
            if to == 40 {
                let (contents, head) = (contents(&store).await.unwrap(), store.head());
                store.close().await.unwrap();
                copy(running.path(), folder.path());
                return Sample { folder, contents, head };
            }
            store.close().await.unwrap();
        }
        unreachable!("the last round returns")
    })
});

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.retain(|path| path.file_name().is_some_and(|name| name != "lock"));
    files.sort();
    files
}

fn check(file: prop::sample::Index, damages: &[Damage]) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    copy(SAMPLE.folder.path(), folder.path());
    let files = files(folder.path());
    let path = &files[file.index(files.len())];
    damages.iter().for_each(|damage| damage.apply(path));
    let in_journal = path.parent().is_some_and(|parent| parent.ends_with("journal"));
    let verified = verify(folder.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match LocalStore::open(folder.path(), &tiny()) {
        Err(error) => {
            let known = error.is_integrity() || matches!(error, Error::UnknownFormat { .. });
            prop_assert!(in_journal && known, "{}: {error}", path.display());
        }
        Ok(store) => {
            prop_assert_eq!(store.head(), SAMPLE.head, "{}", path.display());
            match runtime.block_on(contents(&store)) {
                Ok(found) => prop_assert_eq!(&found, &SAMPLE.contents),
                Err(error) => {
                    prop_assert!(in_journal && error.is_integrity(), "{}: {error}", path.display());
                    prop_assert!(verified.is_err(), "reading found what verifying did not");
                }
            }
            runtime.block_on(store.close()).unwrap();
        }
    }
    Ok(())
}

#[test]
fn damage_anywhere_is_repaired_or_told_and_never_a_silent_loss() {
    let cases = std::env::var("CHECKREIN_FUZZ_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let strategy = (any::<prop::sample::Index>(), damages());
    runner.run(&strategy, |(file, damages)| check(file, &damages)).unwrap();
}
