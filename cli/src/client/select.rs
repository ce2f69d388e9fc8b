//! Finds what people name loosely: a task by a prefix, a checkpoint by number.

use checkrein_shared::api::{self, Api, TaskSummary};
use checkrein_shared::causes::with_causes;
use checkrein_shared::ids::TaskId;
use checkrein_shared::json;
use checkrein_shared::records::{Checkpoint, CheckpointRef};

use crate::exit::Exit;
use crate::failure::Failure;

/// The task that `text` names: an id, the beginning of one, a name, or `last`.
pub(crate) async fn find_task(api: &dyn Api, text: &str) -> Result<TaskSummary, Failure> {
    let tasks = api.tasks().await?;
    choose(&tasks, text).cloned()
}

fn choose<'a>(tasks: &'a [TaskSummary], text: &str) -> Result<&'a TaskSummary, Failure> {
    if text == "last" {
        let none = || Failure::usage("there is no task yet").hint("`checkrein demo` or `checkrein run` starts one");
        return tasks.first().ok_or_else(none);
    }
    if let Some(exact) = tasks.iter().find(|task| task.id.as_str() == text) {
        return Ok(exact);
    }
    let begins = |task: &&TaskSummary| task.id.as_str().starts_with(text) || task.id.short().starts_with(text);
    let mut found: Vec<&TaskSummary> = tasks.iter().filter(begins).collect();
    if found.is_empty() {
        found = tasks.iter().filter(|task| task.name == text).collect();
    }
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(Failure::usage(format!("there is no task `{text}`"))
            .hint("`checkrein tasks` lists what there is; `last` is the newest")),
        several => {
            let ids = several.iter().take(8).map(|task| task.id.as_str()).collect::<Vec<_>>().join(", ");
            Err(Failure::usage(format!("`{text}` fits {} tasks: {ids}", several.len())).hint("type more of the id"))
        }
    }
}

/// The checkpoint that `text` names: `cp-..`, its number, or `head`.
pub(crate) async fn find_checkpoint(api: &dyn Api, task: &TaskId, text: &str) -> Result<CheckpointRef, Failure> {
    let chain = api.checkpoints(task).await?;
    let found = match text {
        "head" | "last" => chain.last(),
        _ => chain.iter().find(|c| c.id.as_str() == text || text.parse() == Ok(c.sequence)),
    };
    found.cloned().ok_or_else(|| {
        let what = match chain.len() {
            0 => format!("task {task} has no checkpoint yet"),
            length => format!("task {task} has no checkpoint `{text}`; it has 1 to {length}"),
        };
        Failure::usage(what).hint(format!("`checkrein checkpoint list {task}` lists them"))
    })
}

/// Reads a checkpoint and checks it against the hash that names it.
pub(crate) async fn load_checkpoint(api: &dyn Api, reference: &CheckpointRef) -> Result<Checkpoint, Failure> {
    let damaged = |why: String| {
        Failure::new(Exit::Integrity, format!("checkpoint {} is damaged: {why}", reference.id))
            .hint("`checkrein store verify` says what else is wrong and what to do")
    };
    // The chain names it, so it was there: that it is not is no mistake of whoever typed.
    let bytes = api.blob(reference.record).await.map_err(|error| match error {
        api::Error::NotFound(_) => damaged(format!("its record is missing ({})", reference.record)),
        other => other.into(),
    })?;
    let checkpoint: Checkpoint = json::parse_as("checkpoint", &bytes).map_err(|error| damaged(with_causes(&error)))?;
    checkpoint.check_hash().map_err(|error| damaged(error.to_string()))?;
    if checkpoint.integrity.checkpoint_hash != reference.hash {
        return Err(damaged("it is another record than the chain names".to_owned()));
    }
    Ok(checkpoint)
}

#[cfg(test)]
mod tests {
    use checkrein_shared::api::TaskState;
    use checkrein_shared::time::Timestamp;

    use super::*;

    fn task(id: &str, name: &str) -> TaskSummary {
        TaskSummary {
            id: id.parse().unwrap(),
            name: name.into(),
            state: TaskState::Queued,
            detail: String::new(),
            created_at: Timestamp::from_millis(0),
            updated_at: Timestamp::from_millis(0),
            origin: None,
            pruned_at: None,
        }
    }

    #[test]
    fn a_task_is_found_by_what_names_only_one() {
        let tasks = [task("t-abc1", "one"), task("t-abd2", "two"), task("t-x", "t-ab")];
        let id = |text| choose(&tasks, text).map(|task| task.id.to_string()).map_err(|f| f.what());
        assert_eq!(id("last").unwrap(), "t-abc1");
        assert_eq!(id("t-abd").unwrap(), "t-abd2");
        assert_eq!(id("abc").unwrap(), "t-abc1");
        assert_eq!(id("two").unwrap(), "t-abd2");
        assert!(id("t-ab").unwrap_err().contains("fits 2 tasks"), "an id goes before a name");
        assert!(id("none").unwrap_err().contains("there is no task"));
        assert!(choose(&[], "last").unwrap_err().what().contains("no task yet"));
    }
}
