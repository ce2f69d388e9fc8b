//! Comparing what lies in the blob store with what is referred to, and removing
//! the rest.
//!
//! Everything is looked at before anything is removed, so that damage stops it
//! in time. A blob that somebody puts meanwhile is young again, and stays.

use std::time::Duration;

use checkrein_shared::api::{Amount, CollectReport};
use checkrein_shared::blob::{REMOVED_MAX, Sweep};
use checkrein_shared::digest::Digest;
use checkrein_shared::time::Timestamp;

use super::mark::Marked;
use super::{Error, breathe};

/// Counts what stays, and returns what goes.
pub(super) async fn survey(
    blobs: &dyn Sweep,
    marked: &mut Marked,
    before: Timestamp,
    report: &mut CollectReport,
    rest: Duration,
) -> Result<Vec<Digest>, Error> {
    let mut garbage = Vec::new();
    for first in 0..=u8::MAX {
        let mut required = marked.required(first);
        for lying in blobs.list(first).await? {
            required.remove(&lying.digest);
            let why = match marked.kind(lying.digest) {
                Some(kind) => kind.name(),
                None if lying.put_at >= before => "young",
                None => {
                    report.freed.add(lying.size);
                    garbage.push(lying.digest);
                    continue;
                }
            };
            report.kept.entry(why.to_owned()).or_default().add(lying.size);
        }
        for digest in required {
            // It may have come after the folder was listed.
            if blobs.size(digest).await?.is_none() {
                marked.damage.add(|| format!("{digest}: no such blob"));
            }
        }
        breathe(rest).await;
    }
    marked.damage.check()?;
    Ok(garbage)
}

/// Removes what is garbage and still old.
pub(super) async fn remove(
    blobs: &dyn Sweep,
    garbage: Vec<Digest>,
    before: Timestamp,
    rest: Duration,
) -> Result<Amount, Error> {
    let mut freed = Amount::default();
    for some in garbage.chunks(REMOVED_MAX) {
        for lying in blobs.remove(some.to_vec(), before).await? {
            freed.add(lying.size);
        }
        breathe(rest).await;
    }
    Ok(freed)
}
