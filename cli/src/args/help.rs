//! The top of the help: commands in groups, and where to start.

use crate::exit;

/// Every command, in groups; the tests see to it that none is missing.
const GROUPS: &[(&str, &[&str])] = &[
    ("Start here", &["demo", "init", "doctor"]),
    ("Work", &["run", "up", "submit"]),
    ("Look", &["tasks", "show", "watch", "checkpoint", "evidence", "effects"]),
    ("Decide", &["inbox", "claim", "approve", "reject", "request-changes", "close-finding", "takeover", "handback"]),
    ("Steer", &["amend", "pause", "resume", "cancel"]),
    ("Keep in order", &["gc", "store"]),
    ("Reference", &["policy", "schema", "completions"]),
];

const EXAMPLES: &str = "\
Examples:
  checkrein demo                              see it once, in a folder of its own
  cd my-project && checkrein init             write checkrein.yaml for your project
  checkrein run checkrein.yaml                run it: work, review, apply
  checkrein run \"fix the failing test\" --agent claude
  checkrein show last --why                   which rule decided what, and on which values
  checkrein approve last                      let through what the policy asks you about

TASK is a task's id, the beginning of one, its name, or `last`.
`checkrein COMMAND --help` says more about each.";

/// Puts the groups into the help of `command`.
pub(super) fn grouped(command: clap::Command) -> clap::Command {
    let mut groups = String::new();
    for (title, names) in GROUPS {
        groups.push_str(&format!("{title}:\n"));
        for name in *names {
            let about = command.find_subcommand(name).and_then(|c| c.get_about());
            let about = about.map(ToString::to_string).unwrap_or_default();
            groups.push_str(&format!("  {name:<16} {about}\n"));
        }
        groups.push('\n');
    }
    command
        .help_template("{about}\n\n{usage-heading} {usage}\n\n{before-help}{options}{after-help}")
        .before_help(groups.trim_end().to_owned())
        .after_help(format!("{EXAMPLES}\n\n{}", exit::HELP))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_command_stands_in_one_group() {
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = crate::args::Cli::command();
        let commands: BTreeSet<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), commands);
        assert_eq!(grouped.len(), commands.len());
    }

    #[test]
    fn every_command_that_takes_arguments_shows_examples() {
        fn check(command: &clap::Command) {
            for sub in command.get_subcommands() {
                let takes = sub.get_arguments().any(clap::Arg::is_positional);
                assert!(!takes || sub.get_after_help().is_some(), "{} has no examples", sub.get_name());
                check(sub);
            }
        }
        check(&crate::args::Cli::command());
    }
}
