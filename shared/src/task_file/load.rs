//! Reads one task file: strict YAML, then every name in it resolved.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::error::{Problem, Problems, TaskFileError};
use super::places::{Surroundings, check_workspace};
use super::{shapes, steps, texts};
use crate::policy::yaml::{self, Node, Place, Segment};
use crate::records::{Plan, TaskSpec, WorkspaceSpec};

/// The largest task file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 256 * 1024;
const NAME_CHARS_MAX: usize = 200;
const OBJECTIVE_BYTES_MAX: usize = 16 * 1024;
const LABELS_MAX: usize = 64;
const LABEL_CHARS_MAX: usize = 200;

/// Which policy a task wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyChoice {
    /// One that comes with the program.
    Named(String),
    /// A file.
    File(PathBuf),
}

/// A task file, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFile {
    /// What is wanted.
    pub spec: TaskSpec,
    /// The policy that the file names; `None` where it names none.
    pub policy: Option<PolicyChoice>,
    /// The canonical path of the file.
    pub origin: PathBuf,
}

/// Reads `path`. `workspace` replaces what the file says about it.
///
/// # Errors
///
/// Everything that is wrong with the file, each problem with its line.
pub fn load(path: &Path, workspace: Option<&Path>, around: &Surroundings) -> Result<TaskFile, TaskFileError> {
    let name = path.display().to_string();
    let whole = |message: String, hint: &str| {
        let problem = Problem { file: name.clone(), line: 0, column: 0, message, hint: Some(hint.to_owned()) };
        TaskFileError::new(vec![problem])
    };
    let (origin, bytes) =
        read(path).map_err(|message| whole(message, "`checkrein init` writes a task file to start from"))?;
    let root = yaml::parse(&name, &bytes).map_err(|problems| TaskFileError::new(reworded(problems)))?;
    let file: shapes::File = yaml::read(&root).map_err(|error| {
        let at = error.at.unwrap_or_default();
        let context = error.path_text();
        let told = context.is_empty() || error.message.starts_with("unknown key");
        let message = if told { error.message } else { format!("`{context}`: {}", error.message) };
        let problem = Problem { file: name.clone(), line: at.line, column: at.column, message, hint: error.hint };
        TaskFileError::new(vec![problem])
    })?;
    let folder = origin.parent().expect("a file's canonical path has a parent").to_owned();
    let reader = Reader { root: &root, folder: &folder };
    let mut problems = Problems::new(&name);
    let built = reader.build(file, workspace, around, &mut problems);
    let (spec, policy) = problems.finish(built)?;
    Ok(TaskFile { spec, policy, origin })
}

fn read(path: &Path) -> Result<(PathBuf, Vec<u8>), String> {
    let origin = path.canonicalize().map_err(|error| format!("the task file can't be read: {error}"))?;
    if !origin.is_file() {
        return Err("this is no plain file, so it is no task file".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(&origin)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("the task file can't be read: {error}"))?;
    Ok((origin, bytes))
}

/// The YAML reader words its hints for policies.
fn reworded(problems: Vec<Problem>) -> Vec<Problem> {
    let reword = |hint: String| {
        hint.replace(
            "a policy needs at least `version: 1`",
            "a task needs `task`, `workspace` and `objective` or `plan`",
        )
        .replace("start with `version: 1`", "start with `task: a name for it`")
        .replace("policy file", "task file")
        .replace("use `extends`, or write the keys out", "write the keys out")
    };
    problems.into_iter().map(|problem| Problem { hint: problem.hint.map(reword), ..problem }).collect()
}

struct Reader<'a> {
    root: &'a Node,
    folder: &'a Path,
}

impl Reader<'_> {
    /// The place of the node at `path`, or of the nearest one around it.
    fn at(&self, path: &[Segment]) -> Place {
        let around = (0..=path.len()).rev().find_map(|length| self.root.find(&path[..length]));
        around.map(|node| node.at).unwrap_or_default()
    }

    fn key(&self, key: &str) -> Place {
        self.at(&[Segment::Key(key.to_owned())])
    }

    fn item(&self, list: &str, index: usize, key: Option<&str>) -> Place {
        let mut path = vec![Segment::Key(list.to_owned()), Segment::Index(index)];
        path.extend(key.map(|key| Segment::Key(key.to_owned())));
        self.at(&path)
    }

    fn build(
        &self,
        mut file: shapes::File,
        workspace: Option<&Path>,
        around: &Surroundings,
        problems: &mut Problems<'_>,
    ) -> Option<(TaskSpec, Option<PolicyChoice>)> {
        let name = self.name(&file.task, problems);
        let objective = self.objective(file.objective.take(), problems);
        let place = self.workspace(&file.workspace, workspace, around, problems);
        let labels = self.labels(std::mem::take(&mut file.labels), problems);
        let spec = file.spec.take().map(|source| texts::spec(source, self.folder, self.key("spec"), problems));
        let constraints = std::mem::take(&mut file.constraints);
        let constraints =
            texts::constraints(constraints, self.folder, |i, key| self.item("constraints", i, key), problems);
        let has_agent = file.agent.is_some();
        let agent_place = |key: &str| self.at(&[Segment::Key("agent".to_owned()), Segment::Key(key.to_owned())]);
        let agent =
            file.agent.take().map(|agent| steps::agent(agent, self.folder, place.as_deref(), agent_place, problems));
        let plan = self.plan(std::mem::take(&mut file.plan), objective.as_deref(), has_agent, problems);
        let policy = file.policy.take().map(|text| self.policy(&text, problems));
        let spec = TaskSpec {
            format: 1,
            name: name?,
            // A task that is nothing but commands needs no objective: its name says what it is for.
            objective: objective.unwrap_or_else(|| file.task.trim().to_owned()),
            spec: spec.flatten(),
            constraints,
            workspace: WorkspaceSpec::Directory(place?.to_str()?.to_owned()),
            labels,
            agent: agent.flatten(),
            plan: plan?,
            budgets: file.budgets,
        };
        Some((spec, policy.flatten()))
    }

    fn name(&self, text: &str, problems: &mut Problems<'_>) -> Option<String> {
        let name = text.trim();
        let odd = name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control);
        if odd {
            let message = format!("`task` is empty, longer than {NAME_CHARS_MAX} characters or more than one line");
            problems.add(self.key("task"), message, "give the task a short name; the `objective` says the rest");
            return None;
        }
        Some(name.to_owned())
    }

    fn objective(&self, text: Option<String>, problems: &mut Problems<'_>) -> Option<String> {
        let text = text?;
        if text.trim().is_empty() || text.len() > OBJECTIVE_BYTES_MAX {
            let message = format!("`objective` is empty or longer than {} KiB", OBJECTIVE_BYTES_MAX / 1024);
            problems.add(
                self.key("objective"),
                message,
                "say in a sentence or two what is to be achieved; longer texts go into `spec`",
            );
            return None;
        }
        Some(text.trim().to_owned())
    }

    fn workspace(
        &self,
        text: &str,
        given: Option<&Path>,
        around: &Surroundings,
        problems: &mut Problems<'_>,
    ) -> Option<PathBuf> {
        let path = given.map_or_else(|| self.folder.join(text), Path::to_owned);
        let checked = if text.is_empty() && given.is_none() {
            problems.add(self.key("workspace"), "`workspace` is empty", "name the folder to work on, such as `.`");
            return None;
        } else {
            check_workspace(&path, around)
        };
        // What was given on the command line stands nowhere in the file.
        let at = if given.is_some() { Place::default() } else { self.key("workspace") };
        checked.map_err(|error| problems.add(at, error.message, error.hint)).ok()
    }

    fn labels(&self, labels: BTreeMap<String, String>, problems: &mut Problems<'_>) -> BTreeMap<String, String> {
        let odd = |text: &String| text.is_empty() || text.chars().count() > LABEL_CHARS_MAX;
        if labels.len() > LABELS_MAX || labels.iter().any(|(key, value)| odd(key) || odd(value)) {
            let message = format!("labels: at most {LABELS_MAX}, each key and value 1 to {LABEL_CHARS_MAX} characters");
            problems.add(self.key("labels"), message, "shorten them");
        }
        labels
    }

    fn plan(
        &self,
        list: Vec<shapes::Step>,
        objective: Option<&str>,
        has_agent: bool,
        problems: &mut Problems<'_>,
    ) -> Option<Plan> {
        if !list.is_empty() {
            return steps::plan(list, has_agent, |index, key| self.item("plan", index, key), problems);
        }
        match objective {
            Some(objective) if has_agent => Some(steps::one_step(objective)),
            _ => {
                let hint = "add `plan:` with steps that `run` commands, or `objective:` and `agent:`";
                problems.add(self.key("plan"), "the task has nothing to do", hint);
                None
            }
        }
    }

    fn policy(&self, text: &str, problems: &mut Problems<'_>) -> Option<PolicyChoice> {
        let choice = policy_choice(text, self.folder);
        match &choice {
            PolicyChoice::File(path) if !path.is_file() => {
                let message = format!("the policy file `{text}` does not exist");
                problems.add(self.key("policy"), message, "its path is relative to the task file");
                None
            }
            _ => Some(choice),
        }
    }
}

/// Reads `text` as the name of a policy; as a file below `folder` where it holds a `/` or ends in `.yaml` or `.yml`.
pub fn policy_choice(text: &str, folder: &Path) -> PolicyChoice {
    let is_file = text.contains('/') || text.ends_with(".yaml") || text.ends_with(".yml");
    if is_file { PolicyChoice::File(folder.join(text)) } else { PolicyChoice::Named(text.to_owned()) }
}
