//! Notices that the disk of the data folder is full, so that a run ends and says so instead of trying for ever.
//!
//! Frees nothing. A task loses nothing by it: it goes on where it was as soon as there is space.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use checkrein_orchestrator::store::LocalStore;
use checkrein_shared::api::EventView;

use crate::failure::Failure;

/// How long between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How many looks in a row must find it full: what is full for a moment may be a temporary file.
const LOOKS: u32 = 5;

/// With less space than this no step can be kept.
const BYTES_MIN: u64 = 1 << 20;

/// How often in a row an attempt may be given back because of it.
const GIVEN_BACK_MAX: u32 = 2;

/// What the kernel says when space or a quota is used up: ENOSPC and EDQUOT.
const FULL: [&str; 2] = ["(os error 28)", "(os error 122)"];

/// What is known about the disk.
#[derive(Debug, Default)]
pub(super) struct Disk {
    given_back: AtomicU32,
    full: AtomicBool,
}

impl Disk {
    /// Whether a run was ended because of it.
    pub(super) fn was_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Looks at an event: attempts that can't keep their files are given back.
    pub(super) fn note(&self, event: &EventView) {
        if says_full(&event.text) {
            self.given_back.fetch_add(1, Ordering::Relaxed);
        } else if event.kind == "checkpoint_written" {
            self.given_back.store(0, Ordering::Relaxed);
        }
    }

    /// Waits until the disk has been full for a while.
    pub(super) async fn until_full(&self, data: &Path, store: &LocalStore) -> Failure {
        let mut looks = 0;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let refused = store.refused();
            let is_full = refused.is_some() || bytes_free(data).is_some_and(|free| free < BYTES_MIN);
            looks = if is_full { looks + 1 } else { 0 };
            if looks >= LOOKS || self.given_back.load(Ordering::Relaxed) >= GIVEN_BACK_MAX {
                self.full.store(true, Ordering::Relaxed);
                return failure(data, refused);
            }
        }
    }
}

/// Whether an error's text says that space or a quota is used up.
pub(super) fn says_full(text: &str) -> bool {
    FULL.iter().any(|full| text.contains(full))
}

/// What is said about a full disk.
pub(super) fn failure(data: &Path, refused: Option<String>) -> Failure {
    let why = refused.map_or_else(String::new, |why| format!(": {why}"));
    Failure::unable(format!("the disk of the data folder is full, so nothing more can be stored{why}"))
        .at(data.display())
        .hint("free some space and run it again: the task goes on where it was, and nothing that was stored is lost")
}

/// How much the user may still write; `None` where the file system doesn't say.
fn bytes_free(path: &Path) -> Option<u64> {
    let info = nix::sys::statvfs::statvfs(path).ok()?;
    let total = info.blocks();
    // Some file systems have no blocks to count.
    (total > 0).then(|| info.blocks_available().saturating_mul(info.fragment_size()))
}

#[cfg(test)]
mod tests {
    use checkrein_shared::api::{TaskState, Tone};
    use checkrein_shared::time::Timestamp;

    use super::*;

    #[test]
    fn attempts_that_are_given_back_for_want_of_space_are_counted_until_one_gets_on() {
        let disk = Disk::default();
        let mut event = EventView {
            task_id: "t-1".parse().unwrap(),
            version: 1,
            at: Timestamp::from_millis(0),
            kind: "attempt_ended".into(),
            text: "given back for later: can't write /x: No space left on device (os error 28)".into(),
            tone: Tone::Info,
            details: Vec::new(),
            state: TaskState::Queued,
            data: serde_json::Value::Null,
        };
        disk.note(&event);
        disk.note(&event);
        assert_eq!(disk.given_back.load(Ordering::Relaxed), 2);
        event.text = "given back for later: the worker is shutting down".into();
        disk.note(&event);
        assert_eq!(disk.given_back.load(Ordering::Relaxed), 2);
        event.kind = "checkpoint_written".into();
        disk.note(&event);
        assert_eq!(disk.given_back.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_kernel_names_a_full_disk_as_expected() {
        for (kind, text) in [(28, FULL[0]), (122, FULL[1])] {
            assert!(std::io::Error::from_raw_os_error(kind).to_string().contains(text));
        }
        assert!(bytes_free(Path::new("/")).is_some());
    }
}
