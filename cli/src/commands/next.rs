//! What a person can type next, given where a task rests.

use checkrein_shared::api::{TaskState, TaskView};
use checkrein_shared::time::Timestamp;

use crate::context::{Context, quoted};
use crate::output::{inbox_lines, shown};

/// Says where the task rests and which commands go on from there. `served` says whether somebody works on it meanwhile.
pub(crate) fn say(context: &Context, task: &TaskView, served: bool) {
    let out = &context.out;
    out.line(format!("{}: {}", out.bold(task.summary.state.as_str()), shown(&task.summary.detail)));
    if context.is_demo {
        return;
    }
    if let Some(item) = &task.item {
        inbox_lines(out, std::slice::from_ref(item), Timestamp::now()).iter().for_each(|line| out.line(line));
    }
    let commands = commands(context, task);
    if !commands.is_empty() {
        out.note("next:");
        commands.iter().for_each(|command| out.note(format!("  {command}")));
    }
    if !served && !task.summary.state.is_terminal() {
        out.note(if commands.is_empty() { "go on with:" } else { "and then go on with:" });
        out.note(format!("  {}", go_on(context, task)));
    }
}

fn commands(context: &Context, task: &TaskView) -> Vec<String> {
    let id = &task.summary.id;
    let (program, data) = (context.program(), context.data_option());
    let of_task = |command: &str, rest: &str| format!("{program} {command} {id}{rest}{data}");
    if let Some(key) = task.item.as_ref().and_then(|item| item.effect) {
        let settle = super::effects::settle_command(context, &key);
        return vec![
            format!("{program} effects show {}{data}", key.short()),
            format!("{settle} --done --reason '..'"),
            format!("{settle} --not-done --reason '..'"),
            of_task("reject", " --reason '..'"),
        ];
    }
    match task.summary.state {
        TaskState::Waiting => vec![
            of_task("checkpoint diff", ""),
            of_task("approve", &approval(task)),
            of_task("request-changes", " --text '..'"),
            of_task("takeover", ""),
            of_task("reject", " --reason '..'"),
        ],
        TaskState::Held => vec![of_task("handback", " --note '..'")],
        TaskState::Paused | TaskState::Blocked => vec![of_task("resume", ""), of_task("cancel", "")],
        TaskState::Completed | TaskState::Failed | TaskState::Cancelled => vec![of_task("show", " --why")],
        TaskState::Queued | TaskState::Running | TaskState::Reviewing | TaskState::Cancelling => Vec::new(),
    }
}

/// ` --hash ..` so that nothing else is approved by mistake.
fn approval(task: &TaskView) -> String {
    let hash = task.item.as_ref().and_then(|item| item.checkpoint_hash);
    hash.map_or_else(String::new, |hash| format!(" --hash {hash}"))
}

/// The command that lets the work go on where nobody serves the data folder.
pub(crate) fn go_on(context: &Context, task: &TaskView) -> String {
    let (program, data) = (context.program(), context.data_option());
    match &task.summary.origin {
        Some(file) => format!("{program} run {}{data}", quoted(file)),
        None => format!("{program} up{data}"),
    }
}
