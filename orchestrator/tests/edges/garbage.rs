//! What collecting garbage takes away, and what it must not.

use std::path::Path;

use checkrein_orchestrator::store;
use checkrein_shared::api::{Error, TaskState};
use checkrein_shared::blob::{Blobs as _, Sweep as _};
use checkrein_shared::coordinator::Receipt;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use checkrein_shared::records::Judgement;

use crate::desk::{Desk, key, verdict};

/// Leads a task to its end: one attempt, one review.
async fn finished(desk: &Desk) -> TaskId {
    let task = desk.submit().await;
    let job = desk.take_job(desk.consume("jobs.local").await.as_mut()).await;
    assert_eq!(desk.send(&desk.checkpoint(&job).await).await, Receipt::Accepted);
    let request = desk.take_review(desk.consume("reviews.local").await.as_mut()).await;
    desk.judge(&request, &verdict(&request, Judgement::Approved), &key(1)).await;
    desk.until(&task, TaskState::Completed).await;
    task
}

async fn lying(desk: &Desk) -> Vec<Digest> {
    let mut all = Vec::new();
    for first in 0..=u8::MAX {
        all.extend(desk.blobs.list(first).await.unwrap().into_iter().map(|lying| lying.digest));
    }
    all
}

fn remove(folder: &Path, digest: Digest) {
    let hex = digest.to_hex();
    std::fs::remove_file(folder.join("blobs").join(&hex[..2]).join(&hex[2..4]).join(&hex)).unwrap();
}

#[tokio::test]
async fn what_nothing_refers_to_goes_when_it_is_a_day_old_and_all_else_stays() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path()).await;
    let task = finished(&desk).await;
    let needed = lying(&desk).await;
    let orphan = desk.blobs.put(b"nobody names this").await.unwrap();
    let report = desk.api.collect(false).await.unwrap();
    assert_eq!((report.freed.count, report.kept["young"].count), (0, 1), "{report:?}");

    desk.clock.days(2);
    let planned = desk.api.collect(true).await.unwrap();
    assert_eq!((planned.freed.count, planned.freed.bytes), (1, 17));
    assert!(desk.blobs.size(orphan).await.unwrap().is_some(), "only looked at");
    let report = desk.api.collect(false).await.unwrap();
    assert_eq!((report.freed, &report.kept), (planned.freed, &planned.kept));
    let mut left = lying(&desk).await;
    assert!(!left.contains(&orphan));
    let kept: u64 = report.kept.values().map(|amount| amount.count).sum();
    assert_eq!(kept, left.len() as u64);
    left.retain(|digest| !needed.contains(digest));
    assert_eq!((left, lying(&desk).await.len()), (Vec::new(), needed.len()), "everything else is still there");
    for kind in ["checkpoints", "trees", "evidence", "verdicts", "tasks and policies"] {
        assert!(report.kept.contains_key(kind), "{kind} in {report:?}");
    }
    assert_eq!(desk.api.collect(false).await.unwrap().freed.count, 0);
    assert_eq!(desk.api.task(&task).await.unwrap().summary.state, TaskState::Completed);
    desk.close().await;
}

#[tokio::test]
async fn where_anything_is_missing_nothing_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path()).await;
    let task = finished(&desk).await;
    let orphan = desk.blobs.put(b"nobody names this").await.unwrap();
    desk.clock.days(2);
    let view = desk.api.task(&task).await.unwrap();
    let missing = [view.head.unwrap().record, view.tree.unwrap(), view.policy.digest];
    for digest in missing {
        let bytes = desk.blobs.get(digest, 1 << 20).await.unwrap();
        remove(folder.path(), digest);
        for dry_run in [true, false] {
            let refused = desk.api.collect(dry_run).await;
            // Policies and checkpoints are also kept in memory: it is the store that has to have them.
            assert!(
                matches!(&refused, Err(Error::Integrity(text)) if text.contains(&digest.to_string())),
                "{refused:?}"
            );
        }
        assert!(desk.blobs.size(orphan).await.unwrap().is_some());
        desk.blobs.put(&bytes).await.unwrap();
    }
    let damaged = view.tree.unwrap().to_hex();
    std::fs::write(folder.path().join("blobs").join(&damaged[..2]).join(&damaged[2..4]).join(&damaged), "x").unwrap();
    assert!(matches!(desk.api.collect(false).await, Err(Error::Integrity(_))));
    assert!(desk.blobs.size(orphan).await.unwrap().is_some());
    desk.close().await;
}

#[tokio::test]
async fn what_an_attempt_has_stored_so_far_stays_however_long_it_takes() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path()).await;
    desk.submit().await;
    let before = desk.blobs.put(b"long before the attempt").await.unwrap();
    let path = folder.path().join("blobs");
    let hex = before.to_hex();
    let file = std::fs::File::options().write(true).open(path.join(&hex[..2]).join(&hex[2..4]).join(&hex)).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    let job = desk.take_job(desk.consume("jobs.local").await.as_mut()).await;
    let so_far = desk.blobs.put(b"what will be reported in three days").await.unwrap();
    desk.clock.days(3);
    let report = desk.api.collect(false).await.unwrap();
    assert_eq!(report.freed.count, 1);
    assert!(desk.blobs.size(before).await.unwrap().is_none());
    assert!(desk.blobs.size(so_far).await.unwrap().is_some());
    // The attempt is over, and never named it.
    assert_eq!(desk.send(&desk.checkpoint(&job).await).await, Receipt::Accepted);
    let request = desk.take_review(desk.consume("reviews.local").await.as_mut()).await;
    desk.judge(&request, &verdict(&request, Judgement::Approved), &key(1)).await;
    desk.until(&job.task_id, TaskState::Completed).await;
    desk.clock.days(3);
    assert!(desk.api.collect(false).await.unwrap().freed.count >= 1);
    assert!(desk.blobs.size(so_far).await.unwrap().is_none());
    desk.close().await;
}

#[tokio::test]
async fn a_task_that_its_policy_keeps_no_longer_leaves_an_epitaph() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path()).await;
    let old = finished(&desk).await;
    let head = desk.api.task(&old).await.unwrap().head.unwrap();
    let records = desk.api.task(&old).await.unwrap().version;
    desk.clock.days(80);
    let newer = finished(&desk).await;
    assert!(desk.api.collect(false).await.unwrap().pruned.is_empty());
    desk.clock.days(11);
    assert_eq!(desk.api.collect(true).await.unwrap().pruned, vec![old.clone()]);
    assert!(desk.api.task(&old).await.is_ok(), "only looked at");
    let report = desk.api.collect(false).await.unwrap();
    assert_eq!(report.pruned, vec![old.clone()]);
    assert!(report.freed.count > 0, "its checkpoint and its verdict: {report:?}");
    assert!(desk.blobs.size(head.record).await.unwrap().is_none());
    desk.close().await;

    let desk = Desk::open(folder.path()).await;
    assert!(matches!(desk.api.task(&old).await, Err(Error::NotFound(_))));
    let epitaph = desk.api.epitaph(&old).await.unwrap();
    assert_eq!((epitaph.outcome, epitaph.name.as_str()), (TaskState::Completed, "mend"));
    assert_eq!((epitaph.checkpoint_hash, epitaph.checkpoint), (Some(head.hash), Some(head.id)));
    assert_eq!(epitaph.records, records);
    let tasks = desk.api.tasks().await.unwrap();
    assert_eq!(tasks.iter().map(|task| &task.id).collect::<Vec<_>>(), [&newer, &old]);
    assert!(tasks[0].pruned_at.is_none() && tasks[1].pruned_at.is_some());
    assert!(tasks[1].detail.contains("; pruned 20"), "{}", tasks[1].detail);
    assert_eq!(desk.api.collect(false).await.unwrap().freed.count, 0, "the newer one is whole");
    desk.close().await;
    store::verify(&folder.path().join("store")).unwrap();
}
