//! The environment of what a worker runs: built from nothing, never inherited.
//!
//! A command gets a short list of harmless variables, a home and a temporary
//! folder of its own, what Checkrein tells it, and the variables that its task
//! names. Values never leave this module except into a command or a redactor.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use checkrein_shared::records::{AgentSpec, HomeDir};
use checkrein_shared::redact::Secret;

/// Where programs are looked for when the worker itself has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The variables of the worker's own process. `Debug` shows names only.
#[derive(Clone, Default)]
pub struct HostEnvironment {
    variables: BTreeMap<OsString, OsString>,
    /// Where the user's tools keep their files; never credentials.
    tools: BTreeMap<OsString, OsString>,
}

impl HostEnvironment {
    /// Takes variables, as `std::env::vars_os()` yields them.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self { variables: variables.into_iter().collect(), tools: BTreeMap::new() }
    }

    /// Adds variables that every command gets because tools need them behind a private home, such as `RUSTUP_HOME`.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// The value of a variable.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// The names that an agent asks for and that are unset or empty here.
    pub(crate) fn missing<'a>(&self, agent: &'a AgentSpec) -> Vec<&'a str> {
        let unset = |name: &&String| self.get(name).is_none_or(OsStr::is_empty);
        agent.env.iter().filter(unset).map(String::as_str).collect()
    }

    /// The values that an agent is given, by name: what must never appear in evidence.
    pub(crate) fn secrets<'a>(&'a self, agent: &'a AgentSpec) -> impl Iterator<Item = (&'a str, Secret)> {
        agent.env.iter().filter_map(|name| Some((name.as_str(), Secret::new(self.get(name)?.as_bytes()))))
    }
}

impl fmt::Debug for HostEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

/// The variables of one command.
pub(crate) type Variables = BTreeMap<OsString, OsString>;

/// What every command gets, with a private home and temporary folder.
pub(crate) fn scrubbed(host: &HostEnvironment, home: &Path, temporary: &Path) -> Variables {
    let path = host.get("PATH").unwrap_or(OsStr::new(DEFAULT_PATH));
    let lang = host.get("LANG").unwrap_or(OsStr::new("C.UTF-8"));
    let pairs: [(&str, &OsStr); 5] = [
        ("PATH", path),
        ("LANG", lang),
        ("TERM", OsStr::new("dumb")),
        ("HOME", home.as_os_str()),
        ("TMPDIR", temporary.as_os_str()),
    ];
    let own = pairs.into_iter().map(|(name, value)| (name.into(), value.into()));
    host.tools.clone().into_iter().chain(own).collect()
}

/// Adds what an agent is given besides: the variables that it names, and the user's home where it wants that one.
pub(crate) fn for_agent(host: &HostEnvironment, agent: &AgentSpec, mut variables: Variables) -> Variables {
    if let (HomeDir::User, Some(home)) = (agent.home, host.get("HOME")) {
        variables.insert("HOME".into(), home.into());
    }
    for (name, value) in agent.env.iter().filter_map(|name| Some((name, host.get(name)?))) {
        variables.insert(name.into(), value.into());
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> HostEnvironment {
        let pairs = [
            ("PATH", "/bin"),
            ("HOME", "/home/me"),
            ("API_KEY", "hunter2hunter2"),
            ("EMPTY", ""),
            ("CHECKREIN_TOKEN", "t"),
        ];
        HostEnvironment::new(pairs.map(|(name, value)| (name.into(), value.into())))
    }

    fn agent(env: &[&str], home: HomeDir) -> AgentSpec {
        AgentSpec { command: vec!["agent".into()], env: env.iter().map(ToString::to_string).collect(), home }
    }

    fn names(variables: &Variables) -> Vec<&str> {
        variables.keys().filter_map(|name| name.to_str()).collect()
    }

    #[test]
    fn a_command_sees_nothing_of_the_worker_but_the_list() {
        let plain = scrubbed(&host(), Path::new("/h"), Path::new("/t"));
        assert_eq!(names(&plain), ["HOME", "LANG", "PATH", "TERM", "TMPDIR"]);
        assert_eq!(plain[OsStr::new("HOME")], "/h");
        assert_eq!(plain[OsStr::new("TERM")], "dumb");
    }

    #[test]
    fn tools_find_their_files_but_never_replace_what_a_command_is_given() {
        let tools = [("RUSTUP_HOME", "/rustup"), ("HOME", "/home/me")].map(|(name, value)| (name.into(), value.into()));
        let plain = scrubbed(&host().with_tools(tools), Path::new("/h"), Path::new("/t"));
        assert_eq!((&plain[OsStr::new("RUSTUP_HOME")], &plain[OsStr::new("HOME")]), (&"/rustup".into(), &"/h".into()));
    }

    #[test]
    fn an_agent_gets_what_its_task_names_and_no_more() {
        let private = for_agent(&host(), &agent(&["API_KEY", "UNSET"], HomeDir::Private), Variables::new());
        assert_eq!(names(&private), ["API_KEY"]);
        let user = for_agent(&host(), &agent(&[], HomeDir::User), scrubbed(&host(), Path::new("/h"), Path::new("/t")));
        assert_eq!(user[OsStr::new("HOME")], "/home/me");
    }

    #[test]
    fn unset_and_empty_variables_are_missing() {
        let asked = agent(&["API_KEY", "UNSET", "EMPTY"], HomeDir::Private);
        assert_eq!(host().missing(&asked), ["UNSET", "EMPTY"]);
    }

    #[test]
    fn debug_output_shows_no_value() {
        let text = format!("{:?}", host());
        assert!(text.contains("API_KEY") && !text.contains("hunter2"), "{text}");
    }
}
