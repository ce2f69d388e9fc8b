//! `effects list`, `effects show` and `effects settle`.

use checkrein_shared::api::{Action, Api, EFFECTS_PAGE, EffectCursor};
use checkrein_shared::ids::TaskId;
use checkrein_shared::records::EffectEntry;
use checkrein_shared::time::Timestamp;

use super::people;
use crate::args::EffectsCommand;
use crate::client::{Session, find_task};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{effect_lines, effects_lines};

/// The fewest characters that name an effect.
const PREFIX_MIN: usize = 8;

/// How many entries are looked at before a command gives up.
const ENTRIES_MAX: usize = 100_000;

/// Carries out a command about effects.
pub(crate) async fn run(context: &Context, command: EffectsCommand) -> Result<Exit, Failure> {
    let session = Session::open(context).await?;
    match command {
        EffectsCommand::List { task } => list(context, &session, task.as_deref()).await?,
        EffectsCommand::Show { key } => show(context, &session, &key).await?,
        EffectsCommand::Settle { key, done, not_done: _, reason } => {
            let entry = find(session.api(), &key).await?;
            let action = Action::SettleEffect { key: entry.key, done, reason };
            return people::finish(context, session, &entry.task_id, action).await;
        }
    }
    session.close().await?;
    Ok(Exit::Completed)
}

async fn list(context: &Context, session: &Session, task: Option<&str>) -> Result<(), Failure> {
    let task = match task {
        Some(task) => Some(find_task(session.api(), task).await?.id),
        None => None,
    };
    let entries = all(session.api(), task.as_ref()).await?;
    let out = &context.out;
    out.object(&entries)?;
    if entries.is_empty() {
        out.note("no task did anything outside its scratch: no step with `effect:` has run yet");
    }
    effects_lines(out, &entries, Timestamp::now()).iter().for_each(|line| out.line(line));
    Ok(())
}

async fn show(context: &Context, session: &Session, key: &str) -> Result<(), Failure> {
    let entry = find(session.api(), key).await?;
    let out = &context.out;
    out.object(&entry)?;
    let settle = settle_command(context, &entry.key);
    effect_lines(out, &entry, &settle, Timestamp::now()).iter().for_each(|line| out.line(line));
    Ok(())
}

/// The beginning of the command that settles an effect.
pub(super) fn settle_command(context: &Context, key: &checkrein_shared::digest::Digest) -> String {
    format!("{} effects settle {}{}", context.program(), key.short(), context.data_option())
}

/// Every entry of the ledger, page by page.
pub(super) async fn all(api: &dyn Api, task: Option<&TaskId>) -> Result<Vec<EffectEntry>, Failure> {
    let mut entries: Vec<EffectEntry> = Vec::new();
    while entries.len() < ENTRIES_MAX {
        let after = entries.last().map(|last| EffectCursor { task: last.task_id.clone(), key: last.key });
        let page = api.effects(task, after.as_ref()).await?;
        let is_last = page.len() < EFFECTS_PAGE;
        entries.extend(page);
        if is_last {
            break;
        }
    }
    Ok(entries)
}

/// The effect whose key begins so.
async fn find(api: &dyn Api, text: &str) -> Result<EffectEntry, Failure> {
    let prefix = text.strip_prefix("sha256:").unwrap_or(text).to_ascii_lowercase();
    let hint = "`checkrein effects list` shows the keys";
    if prefix.len() < PREFIX_MIN || !prefix.bytes().all(|b| b.is_ascii_hexdigit()) {
        let what = format!("`{text}` names no effect: type at least {PREFIX_MIN} hexadecimal digits of its key");
        return Err(Failure::usage(what).hint(hint));
    }
    let entries = all(api, None).await?;
    let mut found = entries.into_iter().filter(|entry| entry.key.to_hex().starts_with(&prefix));
    match (found.next(), found.next()) {
        (Some(entry), None) => Ok(entry),
        (None, _) => Err(Failure::usage(format!("there is no effect `{text}`")).hint(hint)),
        (Some(_), Some(_)) => {
            Err(Failure::usage(format!("`{text}` fits several effects")).hint("type more of the key"))
        }
    }
}
