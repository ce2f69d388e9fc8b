//! `gc`: prunes what no policy keeps any more and removes what nothing needs.

use checkrein_shared::api::{Amount, CollectReport};

use crate::args::GcArgs;
use crate::client::Session;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{counted, size};

/// Collects garbage, through the running instance where there is one.
pub(crate) async fn gc(context: &Context, args: &GcArgs) -> Result<Exit, Failure> {
    let session = Session::open(context).await?;
    let collected = session.api().collect(args.dry_run).await;
    let closed = session.close().await;
    let report = collected?;
    closed?;
    let out = &context.out;
    out.object(&report)?;
    lines(&report).iter().for_each(|line| out.line(line));
    if args.dry_run {
        out.note("nothing was changed; leave out --dry-run to do it");
    }
    Ok(Exit::Completed)
}

fn lines(report: &CollectReport) -> Vec<String> {
    let would = if report.dry_run { "would free" } else { "freed" };
    let mut lines = vec![format!("{would} {}, which nothing refers to", blobs(report.freed))];
    if !report.pruned.is_empty() {
        let ids: Vec<&str> = report.pruned.iter().take(8).map(|id| id.as_str()).collect();
        let more = if report.pruned.len() > ids.len() { ", .." } else { "" };
        let verb = if report.dry_run { "would prune" } else { "pruned" };
        lines.push(format!(
            "{verb} {} that ended longer ago than the policy's `retention: done`: {}{more}",
            counted(report.pruned.len() as u64, "task"),
            ids.join(", ")
        ));
    }
    if report.segments.count > 0 {
        let verb = if report.dry_run { "would drop" } else { "dropped" };
        let Amount { count, bytes } = report.segments;
        lines.push(format!("{verb} {} of the journal ({})", counted(count, "segment"), size(bytes)));
    }
    lines.push("kept".to_owned());
    let young =
        report.young_from.map_or_else(String::new, |from| format!("put since {from}, so somebody may need them"));
    for (why, amount) in &report.kept {
        let why = match why.as_str() {
            "young" => &young,
            "files" => "content of files in trees",
            "other" => "named by records in passing",
            known => known,
        };
        lines.push(format!("  {:>10}  {:>8}  {why}", amount.count, size(amount.bytes)));
    }
    if report.kept.is_empty() {
        lines.push("  nothing: there are no blobs".to_owned());
    }
    lines
}

fn blobs(amount: Amount) -> String {
    format!("{} ({})", counted(amount.count, "blob"), size(amount.bytes))
}

#[cfg(test)]
mod tests {
    use checkrein_shared::time::Timestamp;

    use super::*;

    #[test]
    fn what_was_freed_and_what_was_kept_and_why_is_told() {
        let mut report = CollectReport { young_from: Some(Timestamp::from_millis(0)), ..CollectReport::default() };
        report.freed.add(2_048);
        report.kept.entry("trees".into()).or_default().add(10);
        report.kept.entry("young".into()).or_default().add(3);
        report.pruned = vec!["t-abc".parse().unwrap()];
        report.segments = Amount { count: 2, bytes: 128 << 20 };
        let expected = [
            "freed 1 blob (2.0 KiB), which nothing refers to",
            "pruned 1 task that ended longer ago than the policy's `retention: done`: t-abc",
            "dropped 2 segments of the journal (128.0 MiB)",
            "kept",
            "           1      10 B  trees",
            "           1       3 B  put since 1970-01-01T00:00:00.000Z, so somebody may need them",
        ];
        assert_eq!(lines(&report), expected);
        report.dry_run = true;
        assert!(lines(&report)[0].starts_with("would free 1 blob"));
    }
}
