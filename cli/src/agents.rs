//! Agents that people know by name, and how each is run without a terminal.
//!
//! Every one of them is only a command: it reads the instruction file, works in
//! the current folder and ends. What it may reach is the worker's business.

use std::path::Path;

use checkrein_shared::records::{AgentSpec, HomeDir};

use crate::failure::Failure;

/// One agent.
pub(crate) struct Known {
    /// What people call it, which is also its program.
    pub(crate) name: &'static str,
    /// A line for `sh -c`.
    line: &'static str,
    /// Variables that it reads, where they are set: keys and the places of its settings.
    env: &'static [&'static str],
}

/// The agents, in the order in which people are told about them.
pub(crate) const KNOWN: &[Known] = &[
    Known {
        name: "claude",
        line: r#"exec claude --print --permission-mode acceptEdits < "$CHECKREIN_INSTRUCTION""#,
        env: &["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"],
    },
    Known {
        name: "codex",
        line: r#"exec codex exec --full-auto --skip-git-repo-check - < "$CHECKREIN_INSTRUCTION""#,
        env: &["OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME"],
    },
    Known {
        name: "opencode",
        line: r#"exec opencode run "$(cat "$CHECKREIN_INSTRUCTION")""#,
        env: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "OPENCODE_CONFIG"],
    },
    Known {
        name: "aider",
        line: r#"exec aider --yes-always --no-auto-commits --no-check-update --message-file "$CHECKREIN_INSTRUCTION""#,
        env: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY", "GEMINI_API_KEY"],
    },
];

/// The agent that `text` names: a known one, or a command of one's own.
///
/// A known agent sees the user's home, where its login is kept; another one has a home of its own. A program within the
/// workspace is run from the agent's own copy of it.
pub(crate) fn resolve(
    text: &str,
    workspace: Option<&Path>,
    is_set: impl Fn(&str) -> bool,
) -> Result<AgentSpec, Failure> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Failure::usage("--agent is empty").hint("name claude, codex, opencode, aider, or a command"));
    }
    if let Some(known) = KNOWN.iter().find(|known| known.name == text) {
        let env = known.env.iter().filter(|name| is_set(name)).map(|name| (*name).to_owned()).collect();
        return Ok(AgentSpec { command: shell(known.line), env, home: HomeDir::User });
    }
    Ok(AgentSpec { command: own(text, workspace)?, env: Vec::new(), home: HomeDir::Private })
}

fn shell(line: &str) -> Vec<String> {
    vec!["sh".to_owned(), "-c".to_owned(), line.to_owned()]
}

/// A command of one's own. The agent starts in another folder, so a path to a single program is made absolute.
fn own(text: &str, workspace: Option<&Path>) -> Result<Vec<String>, Failure> {
    if text.contains(char::is_whitespace) || !text.contains('/') {
        return Ok(shell(text));
    }
    let path = Path::new(text);
    match path.canonicalize() {
        Ok(found) => match workspace.and_then(|workspace| found.strip_prefix(workspace).ok()) {
            Some(below) => Ok(vec![format!("./{}", below.display())]),
            None => Ok(vec![found.display().to_string()]),
        },
        Err(error) => Err(Failure::caused(format!("the agent `{text}` can't be found"), &error)
            .into_usage()
            .hint("name a program, or one of claude, codex, opencode, aider")),
    }
}

/// The file of a program, as the search path finds it.
pub(crate) fn find_program(name: &str) -> Option<std::path::PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let runs = |path: &std::path::PathBuf| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(name)).find(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_agent_gets_the_variables_that_are_set_and_no_others() {
        let agent = resolve("codex", None, |name| name == "OPENAI_API_KEY").unwrap();
        assert_eq!(agent.env, ["OPENAI_API_KEY"]);
        assert_eq!(agent.home, HomeDir::User);
        assert!(agent.command[2].contains("CHECKREIN_INSTRUCTION"));
    }

    #[test]
    fn anything_else_is_a_command_with_a_home_of_its_own() {
        let agent = resolve("my-agent --fast", None, |_| true).unwrap();
        assert_eq!((agent.command, agent.home), (shell("my-agent --fast"), HomeDir::Private));
        assert!(agent.env.is_empty(), "what is not named is not passed");
        assert_eq!(resolve("/bin/sh", None, |_| false).unwrap().command.len(), 1);
        let sh = Path::new("/bin/sh").canonicalize().unwrap();
        let below = resolve("/bin/sh", sh.parent(), |_| false).unwrap().command;
        assert_eq!(below, [format!("./{}", sh.file_name().unwrap().display())]);
        assert!(resolve("/nonexistent/agent", None, |_| false).is_err());
        assert!(resolve(" ", None, |_| false).is_err());
    }
}
