//! `store`: checks, counts, rebuilds and copies what the data folder holds.
//!
//! All but `rebuild` work beside a running instance and change nothing in the folder.

use checkrein_orchestrator::store::{self, Loss, Options, RebuildError};
use checkrein_orchestrator::upkeep::{self, Amount, Audit, BackupError, DataFolder, Stats};
use checkrein_shared::causes::with_causes;
use checkrein_shared::time::Timestamp;
use serde_json::json;

use crate::args::{BackupArgs, RebuildArgs, StoreCommand};
use crate::context::Context;
use crate::embedded::{check_begun, store_failure};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{counted, size};

/// Carries out a command of `store`.
pub(crate) async fn run(context: &Context, command: StoreCommand) -> Result<Exit, Failure> {
    let data = DataFolder::new(&context.data);
    check_begun(&context.data)?;
    if !data.store().join("journal").exists() {
        return Err(Failure::unable("there is no journal in the data folder")
            .at(context.data.display())
            .hint("name another with --data DIR, or restore a backup there"));
    }
    match command {
        StoreCommand::Verify => verify(context, data).await,
        StoreCommand::Rebuild(args) => rebuild(context, data, args).await,
        StoreCommand::Stats => stats(context, data).await,
        StoreCommand::Backup(args) => backup(context, data, args).await,
    }
}

async fn off_the_loop<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Failure::caused("the command did not end", &error))
}

async fn verify(context: &Context, data: DataFolder) -> Result<Exit, Failure> {
    let audit = off_the_loop(move || upkeep::audit(&data)).await?;
    context.out.object(&audit)?;
    audit_lines(&audit).iter().for_each(|line| context.out.line(line));
    if audit.is_sound() {
        return Ok(Exit::Completed);
    }
    if !context.out.is_json() {
        for problem in &audit.problems {
            let mut failure = Failure::new(Exit::Integrity, problem.what.as_str()).hint(problem.hint.as_str());
            if let Some(at) = &problem.at {
                failure = failure.at(at);
            }
            context.out.failure(&failure);
        }
        let unlisted = audit.count - audit.problems.len() as u64;
        if unlisted > 0 {
            context.out.line(format!("and {unlisted} more problems"));
        }
    }
    Ok(Exit::Integrity)
}

fn audit_lines(audit: &Audit) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(head) = &audit.head {
        let pruned = if audit.pruned > 0 { format!(", {} of them pruned", audit.pruned) } else { String::new() };
        let records = counted(audit.records, "record");
        lines.push(format!("journal      {records} in {}{pruned}", counted(audit.segments.into(), "segment")));
        lines.push(format!("head         {head}"));
    }
    let chains = if audit.tasks == 1 { "chain" } else { "chains" };
    lines.push(format!("checkpoints  {} in the {chains} of {}", audit.checkpoints, counted(audit.tasks, "task")));
    lines.push(format!("blobs        {} that records name", audit.blobs));
    lines.extend(audit.head_file.as_ref().map(|head_file| format!("head file    {head_file}")));
    lines.extend(audit.index.as_ref().map(|index| format!("index        {index}")));
    lines.push(match audit.count {
        0 => "everything is as it was written".to_owned(),
        1 => "1 problem".to_owned(),
        count => format!("{count} problems"),
    });
    lines
}

async fn rebuild(context: &Context, data: DataFolder, args: RebuildArgs) -> Result<Exit, Failure> {
    let options = Options::new(Timestamp::now());
    let accept_loss = args.accept_loss;
    let rebuilt = off_the_loop(move || store::rebuild(&data.store(), &options, accept_loss)).await?;
    let out = &context.out;
    match rebuilt {
        Ok(rebuilt) => {
            rebuilt.losses.iter().flat_map(loss_lines).for_each(|line| out.warn(&line));
            out.object(&rebuilt)?;
            let (records, tasks) = (counted(rebuilt.head.count, "record"), counted(rebuilt.tasks, "task"));
            out.line(format!("the index was made anew from {records} of {tasks}"));
            Ok(Exit::Completed)
        }
        Err(RebuildError::WouldLose(losses)) => {
            if out.is_json() {
                out.object(&json!({ "losses": losses }))?;
            }
            losses.iter().flat_map(loss_lines).for_each(|line| out.line(line));
            let what = match losses.iter().all(|loss| loss.recorded.is_none()) {
                true => "whether acknowledged records are gone from the journal can't be told; nothing was changed",
                false => "acknowledged records are gone from the journal; nothing was changed",
            };
            Err(Failure::new(Exit::Integrity, what)
                .at(context.data.display())
                .hint("restore a backup; where there is none, `checkrein store rebuild --accept-loss` gives up what is listed above"))
        }
        Err(RebuildError::Store(error)) => Err(store_failure(&context.data, &error)),
    }
}

fn loss_lines(loss: &Loss) -> Vec<String> {
    let Loss { witness, recorded, found, other, tasks } = loss;
    let mut lines = vec![match recorded {
        None => format!(
            "the {witness} is missing or can't be read: whether it knew of more than {found} records is not known"
        ),
        Some(recorded) if *other => format!("record {recorded} is another one than the {witness} knows"),
        Some(recorded) => format!(
            "the {witness} knows of {}, the journal has {found}: {} gone",
            counted(*recorded, "record"),
            match recorded.saturating_sub(*found) {
                1 => "1 is".to_owned(),
                gone => format!("{gone} are"),
            }
        ),
    }];
    lines.extend(tasks.iter().map(|lost| match lost.left {
        0 if lost.known == 1 => format!("  task {} is gone with its only event", lost.task),
        0 => format!("  task {} is gone with all of its {} events", lost.task, lost.known),
        left => format!("  task {} goes back from event {} to {left}", lost.task, lost.known),
    }));
    lines
}

async fn stats(context: &Context, data: DataFolder) -> Result<Exit, Failure> {
    let counted = off_the_loop(move || upkeep::stats(&data)).await?;
    let stats = counted.map_err(|error| store_failure(&context.data, &error))?;
    context.out.object(&stats)?;
    stats_lines(&stats).iter().for_each(|line| context.out.line(line));
    Ok(Exit::Completed)
}

fn stats_lines(stats: &Stats) -> Vec<String> {
    let amount = |what: &str, Amount { count, bytes }: Amount, unit: &str| {
        format!("{what:<9} {count:>10} {unit:<9} {:>10}", size(bytes))
    };
    let mut lines = vec![format!("{:<9} {:>10} records", "journal", stats.records)];
    if stats.pruned > 0 {
        lines.push(format!("{:<9} {:>10} of them pruned", "", stats.pruned));
    }
    lines.push(amount("", stats.segments, "segments"));
    lines.push(amount("index", stats.index, "files"));
    lines.push(amount("blobs", stats.blobs, "blobs"));
    if stats.torn.count > 0 {
        lines.push(amount("torn", stats.torn, "files") + "  unfinished ends that crashes left; they may be removed");
    }
    if stats.aside.count > 0 {
        lines.push(amount("aside", stats.aside, "files") + "  broken indexes; they may be removed");
    }
    lines
}

async fn backup(context: &Context, data: DataFolder, args: BackupArgs) -> Result<Exit, Failure> {
    let target = std::path::absolute(&args.dir).map_err(|error| Failure::caused("the folder has no path", &error))?;
    let backup = upkeep::backup(&data, &DataFolder::new(&target)).await;
    let backup = backup.map_err(|error| backup_failure(&target, &error))?;
    let out = &context.out;
    out.object(&backup)?;
    out.line(format!(
        "{}: {} records of {} tasks and {} blobs ({}), checked",
        target.display(),
        backup.head.count,
        backup.tasks,
        backup.blobs,
        size(backup.bytes)
    ));
    if backup.keys {
        out.note("the keys are in it: keep it as safe as the data folder");
    }
    Ok(Exit::Completed)
}

fn backup_failure(target: &std::path::Path, error: &BackupError) -> Failure {
    let exit = match error {
        BackupError::NotEmpty(_) | BackupError::Inside(_) => Exit::Usage,
        error if error.is_integrity() => Exit::Integrity,
        _ => Exit::Unable,
    };
    let failure = Failure::new(exit, with_causes(error)).at(target.display());
    match exit {
        Exit::Integrity => failure.hint("see what `checkrein store verify` says; what was copied so far is no backup"),
        Exit::Unable => failure.hint("try again with a new folder"),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use checkrein_orchestrator::store::LostEvents;

    use super::*;

    #[test]
    fn what_would_be_lost_is_said_task_by_task() {
        let tasks = vec![
            LostEvents { task: "t-1".parse().unwrap(), known: 7, left: 5 },
            LostEvents { task: "t-2".parse().unwrap(), known: 3, left: 0 },
        ];
        let loss = Loss { witness: "index", recorded: Some(12), found: 7, other: false, tasks };
        let expected = [
            "the index knows of 12 records, the journal has 7: 5 are gone",
            "  task t-1 goes back from event 7 to 5",
            "  task t-2 is gone with all of its 3 events",
        ];
        assert_eq!(loss_lines(&loss), expected);
        let other = Loss { other: true, tasks: Vec::new(), ..loss.clone() };
        assert_eq!(loss_lines(&other), ["record 12 is another one than the index knows"]);
        let unread = Loss { witness: "head file", recorded: None, tasks: Vec::new(), ..loss };
        assert!(loss_lines(&unread)[0].starts_with("the head file is missing or can't be read"));
    }

    #[test]
    fn what_may_be_removed_is_told_where_there_is_any() {
        let mut stats = Stats { records: 12, blobs: Amount { count: 3, bytes: 2_048 }, ..Stats::default() };
        assert_eq!(stats_lines(&stats).len(), 4);
        stats.torn.count = 1;
        stats.aside.count = 4;
        let lines = stats_lines(&stats);
        assert!(lines.len() == 6 && lines[4].contains("may be removed") && lines[5].contains("broken indexes"));
    }
}
