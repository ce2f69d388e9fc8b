use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::prelude::*;

use super::*;

fn store() -> (tempfile::TempDir, FsBlobs) {
    let folder = tempfile::tempdir().unwrap();
    let blobs = FsBlobs::open(folder.path().join("blobs")).unwrap();
    (folder, blobs)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[tokio::test]
async fn what_was_put_is_read_back_from_its_place_and_is_private() {
    let (_folder, blobs) = store();
    let digest = blobs.put(b"abc").await.unwrap();
    assert_eq!(digest, Digest::of("abc"));
    assert_eq!(blobs.get(digest, 3).await.unwrap(), b"abc");
    assert_eq!(blobs.size(digest).await.unwrap(), Some(3));
    let path = blobs.root().join(format!("ba/78/{}", digest.to_hex()));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::read_dir(blobs.root().join(TEMP_FOLDER)).unwrap().count(), 0);
}

#[tokio::test]
async fn missing_blobs_and_blobs_over_the_limit_are_different_errors() {
    let (_folder, blobs) = store();
    let missing = Digest::of("never put");
    assert!(matches!(blobs.get(missing, 9).await, Err(Error::Missing(digest)) if digest == missing));
    assert_eq!(blobs.size(missing).await.unwrap(), None);
    let digest = blobs.put(b"abc").await.unwrap();
    assert!(matches!(blobs.get(digest, 2).await, Err(Error::TooLarge { size: 3, limit: 2 })));
    let small = FsBlobs::open_with_limit(blobs.root(), 2).unwrap();
    assert!(matches!(small.put(b"abc").await, Err(Error::TooLarge { size: 3, limit: 2 })));
}

#[tokio::test]
async fn a_damaged_blob_is_an_error_until_it_is_put_again() {
    let (_folder, blobs) = store();
    let digest = blobs.put(b"abcdef").await.unwrap();
    let path = path_of(blobs.root(), digest);
    for damage in [&b"abcdeX"[..], b"abc", b"", b"abcdefg"] {
        fs::write(&path, damage).unwrap();
        assert!(matches!(blobs.get(digest, 99).await, Err(Error::Damaged { expected, .. }) if expected == digest));
        let report = blobs.verify_all().await.unwrap();
        assert_eq!((report.blobs, report.problems), (0, 1), "{report:?}");
        blobs.put(b"abcdef").await.unwrap();
        assert_eq!(blobs.get(digest, 99).await.unwrap(), b"abcdef");
    }
}

#[tokio::test]
async fn a_symbolic_link_is_no_blob() {
    let (folder, blobs) = store();
    let digest = blobs.put(b"abc").await.unwrap();
    let path = path_of(blobs.root(), digest);
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert!(matches!(blobs.get(digest, 9).await, Err(Error::Missing(_))));
    blobs.put(b"abc").await.unwrap();
    assert_eq!(blobs.get(digest, 9).await.unwrap(), b"abc");
    assert!(fs::symlink_metadata(&path).unwrap().is_file());
}

#[tokio::test]
async fn putting_again_refreshes_the_age() {
    let (_folder, blobs) = store();
    let digest = blobs.put(b"abc").await.unwrap();
    let path = path_of(blobs.root(), digest);
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000);
    fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    blobs.put(b"abc").await.unwrap();
    assert!(fs::metadata(&path).unwrap().modified().unwrap() > old);
}

#[tokio::test]
async fn leftovers_are_cleared_unless_somebody_else_is_writing() {
    let (_folder, blobs) = store();
    let leftover = blobs.root().join(TEMP_FOLDER).join("half-written");
    fs::write(&leftover, b"half").unwrap();
    let second = FsBlobs::open(blobs.root()).unwrap();
    assert!(leftover.exists(), "it may belong to the first opener");
    let root = blobs.root().to_path_buf();
    drop((blobs, second));
    FsBlobs::open(&root).unwrap();
    assert!(!leftover.exists());
}

#[tokio::test]
async fn many_writers_of_the_same_blobs_all_succeed() {
    let (_folder, blobs) = store();
    let contents: Vec<Vec<u8>> = (0..40u8).map(|n| vec![n; usize::from(n)]).collect();
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let (blobs, contents) = (blobs.clone(), contents.clone());
            tokio::spawn(async move { blobs.put_all(contents).await.unwrap() })
        })
        .collect();
    for writer in writers {
        let digests = writer.await.unwrap();
        assert_eq!(digests, contents.iter().map(Digest::of).collect::<Vec<_>>());
    }
    let report = blobs.verify_all().await.unwrap();
    assert_eq!((report.blobs, report.problems), (40, 0));
    assert_eq!(report.bytes, (0..40).sum::<u64>());
}

#[tokio::test]
async fn strays_are_reported_and_nothing_is_changed() {
    let (_folder, blobs) = store();
    let digest = blobs.put(b"abc").await.unwrap();
    let path = path_of(blobs.root(), digest);
    let misplaced = blobs.root().join("00/00");
    fs::create_dir_all(&misplaced).unwrap();
    fs::copy(&path, misplaced.join(digest.to_hex())).unwrap();
    fs::write(blobs.root().join("notes.txt"), "x").unwrap();
    fs::write(path.with_file_name("short"), "x").unwrap();
    let report = blobs.verify_all().await.unwrap();
    assert_eq!((report.blobs, report.problems), (1, 3), "{report:?}");
    assert!(report.listed.iter().all(|(_, damage)| *damage == Damage::Stray));
    assert!(blobs.root().join("notes.txt").exists());
}

#[tokio::test]
async fn a_failed_write_leaves_no_blob_and_no_temporary_file() {
    let (_folder, blobs) = store();
    let digest = Digest::of("abc");
    let hex = digest.to_hex();
    // A file where a folder must be: no permission bits, so that it fails for root too.
    fs::write(blobs.root().join(&hex[..2]), "in the way").unwrap();
    assert!(matches!(blobs.put(b"abc").await, Err(Error::Io { .. })));
    assert_eq!(fs::read_dir(blobs.root().join(TEMP_FOLDER)).unwrap().count(), 0);
    fs::remove_file(blobs.root().join(&hex[..2])).unwrap();
    assert_eq!(blobs.put(b"abc").await.unwrap(), digest);

    // A folder that vanishes under a running process costs one failed put, not all later ones.
    fs::remove_dir_all(blobs.root().join(&hex[..2])).unwrap();
    assert!(blobs.put(b"abc").await.is_err());
    assert_eq!(blobs.put(b"abc").await.unwrap(), digest);
    assert_eq!(blobs.get(digest, 9).await.unwrap(), b"abc");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_group_with_duplicates_is_stored_in_order(contents in prop::collection::vec(prop::collection::vec(0..4u8, 0..4), 0..20)) {
        let (_folder, blobs) = store();
        block_on(async {
            let digests = blobs.put_all(contents.clone()).await.unwrap();
            assert_eq!(digests.len(), contents.len());
            for (digest, content) in digests.iter().zip(&contents) {
                assert_eq!(&blobs.get(*digest, 99).await.unwrap(), content);
            }
        });
    }
}
