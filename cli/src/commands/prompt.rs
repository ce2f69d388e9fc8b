//! Asks the person at the terminal, where the policy wants one.

use std::io::Write as _;

use checkrein_shared::api::{Action, Api, TaskState, TaskView};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use checkrein_shared::time::Timestamp;

use super::{checkpoint, takeover};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{inbox_lines, shown};

/// What came of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Something was decided: the task may go on.
    GoOn,
    /// Nothing: it stays parked.
    Quit,
}

/// Asks until something is decided.
pub(crate) async fn ask(context: &Context, api: &dyn Api, id: &TaskId) -> Result<Answer, Failure> {
    let out = &context.out;
    loop {
        let task = api.task(id).await?;
        match task.summary.state {
            TaskState::Waiting => {
                let items = task.item.as_slice();
                inbox_lines(out, items, Timestamp::now()).iter().for_each(|line| out.line(line));
                if let Some(key) = items.iter().find_map(|item| item.effect) {
                    match settle(context, api, id, key).await? {
                        Some(answer) => return Ok(answer),
                        None => continue,
                    }
                }
                let question = "[a]pprove [d]iff [r]equest changes [t]ake over [q]uit and park: ";
                let Some(answer) = read(context, question).await? else { return Ok(Answer::Quit) };
                if let Some(answer) = decide(context, api, &task, &answer).await? {
                    return Ok(answer);
                }
            }
            TaskState::Held => {
                let Some(answer) = read(context, "edit the files, then: [h]and back [q]uit and park: ").await? else {
                    return Ok(Answer::Quit);
                };
                match answer.as_str() {
                    "h" => {
                        let note = read(context, "what did you do? ").await?.filter(|note| !note.is_empty());
                        takeover::hand_back(context, api, &task, note).await?;
                        return Ok(Answer::GoOn);
                    }
                    "q" => return Ok(Answer::Quit),
                    _ => {}
                }
            }
            _ => return Ok(Answer::GoOn),
        }
    }
}

/// One answer to the question whether an effect happened; `None` asks again.
async fn settle(context: &Context, api: &dyn Api, id: &TaskId, key: Digest) -> Result<Option<Answer>, Failure> {
    let question = "did it happen? [y]es [n]o [q]uit and park: ";
    let Some(answer) = read(context, question).await? else { return Ok(Some(Answer::Quit)) };
    let done = match answer.as_str() {
        "y" => true,
        "n" => false,
        "q" => return Ok(Some(Answer::Quit)),
        _ => return Ok(None),
    };
    let Some(reason) = read(context, "how do you know? ").await?.filter(|reason| !reason.is_empty()) else {
        return Ok(None);
    };
    act(context, api, id, Action::SettleEffect { key, done, reason }).await
}

/// One answer to a waiting task; `None` asks again.
async fn decide(context: &Context, api: &dyn Api, task: &TaskView, answer: &str) -> Result<Option<Answer>, Failure> {
    let id = &task.summary.id;
    let Some(hash) = task.item.as_ref().and_then(|item| item.checkpoint_hash) else {
        context.out.line("the question names no checkpoint, so it can't be answered here");
        return Ok(Some(Answer::Quit));
    };
    let action = match answer {
        "a" => Action::Approve { checkpoint_hash: hash, note: None },
        "r" => match read(context, "what has to be done? ").await?.filter(|text| !text.is_empty()) {
            Some(text) => Action::RequestChanges { checkpoint_hash: hash, text },
            None => return Ok(None),
        },
        "d" => {
            if let Some(reference) = task.item.as_ref().and_then(|item| item.checkpoint.clone()) {
                checkpoint::print_change(context, api, &reference).await?;
            }
            return Ok(None);
        }
        "t" => {
            takeover::take_over(context, api, task, None).await?;
            return Ok(None);
        }
        "q" => return Ok(Some(Answer::Quit)),
        _ => return Ok(None),
    };
    act(context, api, id, action).await
}

async fn act(context: &Context, api: &dyn Api, id: &TaskId, action: Action) -> Result<Option<Answer>, Failure> {
    match api.act(id, action, &context.by).await {
        Ok(_) => Ok(Some(Answer::GoOn)),
        // Somebody else was faster, or the question changed: it is shown as it is now.
        Err(checkrein_shared::api::Error::Conflict(why)) => {
            context.out.line(format!("not done: {}", shown(&why)));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Reads a line; `None` at the end of the input.
async fn read(context: &Context, question: &str) -> Result<Option<String>, Failure> {
    context.out.progress_done();
    let mut stderr = std::io::stderr();
    let _ = stderr.write_all(question.as_bytes()).and_then(|()| stderr.flush());
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|length| (length > 0).then(|| line.trim().to_owned()))
    });
    let line = read.await.map_err(|error| Failure::caused("the answer was not read", &error))?;
    line.map_err(|error| Failure::caused("the answer can't be read", &error))
}
