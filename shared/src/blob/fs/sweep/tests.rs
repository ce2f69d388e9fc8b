use std::time::Duration;

use super::*;
use crate::blob::fs::FsBlobs;
use crate::blob::{Blobs, Sweep};

fn future() -> Timestamp {
    Timestamp::from_millis(i64::MAX / 2)
}

fn store() -> (tempfile::TempDir, FsBlobs) {
    let folder = tempfile::tempdir().unwrap();
    let blobs = FsBlobs::open(folder.path().join("blobs")).unwrap();
    (folder, blobs)
}

fn age(blobs: &FsBlobs, digest: Digest) {
    let old = UNIX_EPOCH + Duration::from_secs(1_000);
    // It may be gone again, where somebody removes at the same time.
    if let Ok(file) = std::fs::File::options().write(true).open(path_of(blobs.root(), digest)) {
        file.set_modified(old).unwrap();
    }
}

fn old() -> Timestamp {
    Timestamp::from_millis(2_000_000)
}

#[tokio::test]
async fn everything_that_lies_there_is_listed_once_with_size_and_age() {
    let (_folder, blobs) = store();
    let mut put: Vec<Digest> = Vec::new();
    for number in 0..600u32 {
        put.push(blobs.put(&number.to_be_bytes()).await.unwrap());
    }
    age(&blobs, put[7]);
    std::fs::write(blobs.root().join("notes.txt"), "x").unwrap();
    let mut listed = Vec::new();
    for first in 0..=255 {
        listed.extend(blobs.list(first).await.unwrap());
    }
    put.sort();
    assert_eq!(listed.iter().map(|lying| lying.digest).collect::<Vec<_>>(), put);
    assert!(listed.iter().all(|lying| lying.size == 4));
    let aged = listed.iter().filter(|lying| lying.put_at == Timestamp::from_millis(1_000_000)).count();
    assert_eq!(aged, 1);
}

#[tokio::test]
async fn only_what_is_old_is_removed_and_putting_or_keeping_makes_it_young() {
    let (_folder, blobs) = store();
    let mut digests = Vec::new();
    for text in ["old", "put again", "kept", "young"] {
        digests.push(blobs.put(text.as_bytes()).await.unwrap());
    }
    digests[..3].iter().for_each(|digest| age(&blobs, *digest));
    blobs.put(b"put again").await.unwrap();
    assert_eq!(blobs.keep(digests[2]).await.unwrap(), Some(4));
    assert_eq!(blobs.keep(Digest::of("never put")).await.unwrap(), None);
    let removed = blobs.remove(digests.clone(), old()).await.unwrap();
    assert_eq!(removed.iter().map(|lying| (lying.digest, lying.size)).collect::<Vec<_>>(), [(digests[0], 3)]);
    assert_eq!(blobs.size(digests[0]).await.unwrap(), None);
    // Removing it again is no error, and a put brings it back.
    assert!(blobs.remove(vec![digests[0]], future()).await.unwrap().is_empty());
    blobs.put(b"old").await.unwrap();
    assert_eq!(blobs.get(digests[0], 9).await.unwrap(), b"old");
}

#[tokio::test]
async fn nothing_is_removed_while_another_opener_may_be_writing() {
    let (_folder, blobs) = store();
    let digest = blobs.put(b"abc").await.unwrap();
    let second = FsBlobs::open(blobs.root()).unwrap();
    let error = blobs.remove(vec![digest], future()).await.unwrap_err();
    assert!(error.to_string().contains("another process has them open"), "{error}");
    drop(blobs);
    assert_eq!(second.remove(vec![digest], future()).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_put_has_confirmed_is_never_gone() {
    let (_folder, blobs) = store();
    let contents: Vec<Vec<u8>> = (0..24u8).map(|n| vec![n; 9]).collect();
    let digests: Vec<Digest> = contents.iter().map(Digest::of).collect();
    let remover = {
        let (blobs, digests) = (blobs.clone(), digests.clone());
        tokio::spawn(async move {
            let mut removed = 0;
            for _ in 0..60 {
                // The sweeper believes that all are old unless they were put after it began.
                let lying = blobs.remove(digests.clone(), old()).await.unwrap();
                removed += lying.len();
                tokio::task::yield_now().await;
            }
            removed
        })
    };
    for round in 0..40 {
        for digest in &digests {
            age(&blobs, *digest);
        }
        blobs.put_all(contents.clone()).await.unwrap();
        for digest in &digests {
            assert!(blobs.size(*digest).await.unwrap().is_some(), "round {round}");
        }
    }
    remover.await.unwrap();
}
