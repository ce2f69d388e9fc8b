//! What each command does, one a file or a few that belong together.

mod amend;
mod checkpoint;
mod effects;
mod evidence;
mod follow;
mod gc;
mod inbox;
mod look;
mod next;
mod people;
mod policy;
mod prompt;
mod reference;
mod run;
mod signals;
mod store;
mod submit;
pub(crate) mod takeover;
mod up;

use checkrein_shared::api::Action;

use crate::args::{Command, TaskArg};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

pub(crate) use checkpoint::verify_chain;
pub(crate) use follow::{Follow, Rest, rests};
pub(crate) use run::run_in_place;
pub(crate) use signals::Signals;

/// Carries out a command.
pub(crate) async fn carry_out(context: Context, command: Command) -> Result<Exit, Failure> {
    let action = |task: TaskArg, action: Action| (task.task, action);
    let (task, action) = match command {
        Command::Demo(args) => return crate::demo::run(context, &args).await,
        Command::Init(args) => return crate::init::run(&context, &args),
        Command::Doctor => return crate::doctor::run(&context).await,
        Command::Run(args) => return run::run(&context, &args).await,
        Command::Up => return up::up(&context).await,
        Command::Submit(args) => return submit::submit(&context, &args).await,
        Command::Tasks => return look::tasks(&context).await,
        Command::Show(args) => return look::show(&context, &args).await,
        Command::Watch(args) => return look::watch(&context, &args).await,
        Command::Checkpoint(command) => return checkpoint::run(&context, command).await,
        Command::Effects(command) => return effects::run(&context, command).await,
        Command::Evidence(command) => return evidence::run(&context, command).await,
        Command::Inbox => return inbox::inbox(&context).await,
        Command::Approve(args) => return people::approve(&context, args).await,
        Command::Reject(args) => return people::reject(&context, args).await,
        Command::RequestChanges(args) => return people::request_changes(&context, args).await,
        Command::CloseFinding(args) => return people::close_finding(&context, args).await,
        Command::Takeover(args) => return takeover::takeover(&context, &args).await,
        Command::Handback(args) => return takeover::handback(&context, &args).await,
        Command::Amend(args) => return amend::amend(&context, &args).await,
        Command::Store(command) => return store::run(&context, command).await,
        Command::Gc(args) => return gc::gc(&context, &args).await,
        Command::Policy(command) => return policy::run(&context, &command),
        Command::Schema(args) => return reference::schema(&context, &args),
        Command::Completions(args) => return reference::completions(&context, &args),
        Command::Claim(task) => action(task, Action::Claim {}),
        Command::Pause(task) => action(task, Action::Pause {}),
        Command::Resume(task) => action(task, Action::Resume {}),
        Command::Cancel(task) => action(task, Action::Cancel {}),
    };
    people::act(&context, &task, action).await
}
