//! Large changes and odd files.

use checkrein_shared::digest::Digest;
use checkrein_shared::records::Judgement;

use super::bench::{Bench, Test, of, tests};
use super::task::{BUG, FIX, Task};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        five_thousand_files_are_all_looked_at,
        one_odd_file_does_not_hide_the_others,
        a_file_that_is_too_large_to_read_is_not_approved,
    ]
}

async fn five_thousand_files_are_all_looked_at() {
    let mut bench = Bench::new().await;
    let mut task = Task::on(&BUG).write(FIX.0, FIX.1);
    for n in 0..5_000 {
        // Few contents, so that the test does not spend its time on making thousands of blobs durable.
        task = task.write(&format!("data/{}/{n}", n % 50), format!("{}\n", n % 100));
    }
    let stored = bench.store(&task).await;
    assert_eq!(stored.changeset.changes().len(), 5_001);
    let verdict = bench.ask(&stored.request).await;
    assert_eq!(verdict.verdict, Judgement::Approved, "{:?}", verdict.missing_evidence);
    assert_eq!(verdict.coverage.percent, 100);
    assert!((0..100).all(|n| verdict.coverage.fetched.contains(&Digest::of(format!("{n}\n")))));
    let sizes: Vec<&str> = of(&verdict, "size").into_iter().map(|f| f.claim.as_str()).collect();
    assert!(sizes.iter().any(|claim| claim.contains("5001 files")), "{sizes:?}");
    bench.stop().await;
}

async fn one_odd_file_does_not_hide_the_others() {
    let mut bench = Bench::new().await;
    let task = Task::on(&BUG)
        .write("a.pdf", b"%PDF\x1b]0;title\x07\xff\xfe\0\x80 SYSTEM")
        .write("one-line.json", format!("[{}1]\n", "1,".repeat(200_000)))
        .write("src/hidden.rs", "let admin = \"user\u{202e} //\";\n");
    let verdict = bench.review(&task).await;
    assert_eq!(verdict.coverage.percent, 100, "{:?}", verdict.missing_evidence);
    let invisible = of(&verdict, "invisible");
    assert!(invisible.len() == 1 && invisible[0].claim.contains("src/hidden.rs"), "{invisible:?}");
    bench.stop().await;
}

async fn a_file_that_is_too_large_to_read_is_not_approved() {
    let mut bench = Bench::new().await;
    let task = Task::on(&BUG).write(FIX.0, FIX.1).write("big", vec![b'x'; (8 << 20) + 1]);
    let verdict = bench.review(&task).await;
    assert_eq!(verdict.verdict, Judgement::Inconclusive);
    assert!(verdict.missing_evidence[0].contains("`big`"), "{:?}", verdict.missing_evidence);
    assert!(verdict.verifiers[0].ok);
    bench.stop().await;
}
