//! The text that a command agent reads first: what is wanted, what was asked
//! for since, and how to report.
//!
//! Pure text. It says nothing of earlier conversations or other tasks, and it
//! holds no secret: everything in it comes from the task and its evidence.

use std::fmt::Write as _;
use std::path::PathBuf;

use checkrein_shared::records::{Evidence, EvidenceRef, RequiredAction, TaskSpec};

/// What an instruction is made from.
#[derive(Debug)]
pub(crate) struct Brief<'a> {
    pub(crate) spec: &'a TaskSpec,
    pub(crate) step: &'a str,
    pub(crate) prompt: &'a str,
    pub(crate) attempt: u64,
    /// What is to be said about an attempt that goes on.
    pub(crate) told: Option<&'a str>,
    pub(crate) required: &'a [RequiredAction],
    /// Evidence that claims may name.
    pub(crate) citable: Vec<(&'a EvidenceRef, &'a Evidence)>,
    /// Where the texts of some evidence can be read.
    pub(crate) texts: &'a [(EvidenceRef, PathBuf)],
}

/// The most refs that are listed.
pub(crate) const CITABLE_MAX: usize = 200;

/// `write!` into a string can't fail.
macro_rules! put {
    ($text:expr, $($arg:tt)*) => {
        writeln!($text, $($arg)*).expect("writing to a String can't fail")
    };
}

/// Writes the instruction.
pub(crate) fn write(brief: &Brief<'_>) -> String {
    let mut text = String::new();
    head(&mut text, brief);
    if let Some(told) = brief.told {
        put!(text, "## Where you go on from\n\n{}\n", told.trim());
    }
    required(&mut text, brief);
    specification(&mut text, brief);
    citable(&mut text, brief);
    reporting(&mut text);
    text
}

fn head(text: &mut String, brief: &Brief<'_>) {
    put!(text, "# {}\n", brief.spec.name);
    put!(text, "You are working in the current directory. It is an isolated copy of a project: change files here and");
    put!(text, "nowhere else. When you exit, what you changed is reviewed from evidence before any of it is used.\n");
    put!(text, "## Objective\n\n{}\n", brief.spec.objective.trim());
    put!(text, "## Step `{}`, attempt {}\n\n{}\n", brief.step, brief.attempt, brief.prompt.trim());
}

fn required(text: &mut String, brief: &Brief<'_>) {
    if brief.required.is_empty() {
        return;
    }
    put!(text, "## Required actions\n");
    put!(text, "The work so far was not accepted. Each of these has to be done:\n");
    for (number, action) in brief.required.iter().enumerate() {
        let finding = action.finding.as_ref().map_or_else(String::new, |f| format!(", finding `{f}`"));
        put!(text, "{}. {} (from {}{finding})", number + 1, action.text.trim(), action.from);
        for reference in &action.refs {
            match brief.texts.iter().find(|(known, _)| known == reference) {
                Some((_, path)) => put!(text, "   - see `{reference}`: {}", path.display()),
                None => put!(text, "   - see `{reference}`"),
            }
        }
    }
    text.push('\n');
}

fn specification(text: &mut String, brief: &Brief<'_>) {
    if let Some(spec) = &brief.spec.spec {
        put!(text, "## Specification ({})\n\n{}\n", spec.spec_ref, spec.text.trim());
    }
    if !brief.spec.constraints.is_empty() {
        put!(text, "## Constraints\n");
        for constraint in &brief.spec.constraints {
            put!(text, "- `{}` (version {}): {}", constraint.id, constraint.version, constraint.text.trim());
        }
        text.push('\n');
    }
}

fn citable(text: &mut String, brief: &Brief<'_>) {
    if brief.citable.is_empty() {
        return;
    }
    put!(text, "## Evidence that you may name\n");
    for (reference, evidence) in brief.citable.iter().take(CITABLE_MAX) {
        put!(text, "- `{reference}` ({}, {} bytes)", evidence.media_type, evidence.size);
    }
    if brief.citable.len() > CITABLE_MAX {
        put!(text, "- and {} more", brief.citable.len() - CITABLE_MAX);
    }
    text.push('\n');
}

fn reporting(text: &mut String) {
    put!(text, "## Reporting (optional)\n");
    put!(text, "Write strict JSON to the path in the environment variable `CHECKREIN_RESULT`:\n");
    put!(
        text,
        r#"    {{"version": 1, "claims": [{{"text": "what you did", "refs": ["file:src/main.rs", "log:this"]}}], "open_issues": ["what is not done"]}}"#
    );
    put!(text, "\n`file:<path>` names a file of this directory, `log:this` your own output. A claim without refs that");
    put!(text, "exist counts as unfounded.\n");
    put!(
        text,
        "What you need to go on after an interruption can be kept in the file that `CHECKREIN_RUN_STATE` names.\n"
    );
    put!(text, "Exit with 0 when the step is done and with anything else when it is not.");
}

#[cfg(test)]
mod tests {
    use checkrein_shared::records::{Budgets, Constraint, Plan, SpecText, WorkspaceSpec};

    use super::*;

    fn spec() -> TaskSpec {
        TaskSpec {
            format: 1,
            name: "fix-the-sum".into(),
            objective: "The total must be right.".into(),
            spec: Some(SpecText { spec_ref: "spec.md".into(), text: "Sums are exact.".into() }),
            constraints: vec![Constraint { id: "api".into(), version: 2, text: "Keep the names.".into() }],
            workspace: WorkspaceSpec::Directory("/p".into()),
            labels: Default::default(),
            agent: None,
            plan: Plan { version: 1, steps: Vec::new() },
            budgets: Budgets::default(),
        }
    }

    #[test]
    fn everything_that_is_wanted_stands_in_the_text() {
        let spec = spec();
        let seen: EvidenceRef = "test:unit-1".parse().unwrap();
        let unseen: EvidenceRef = "diff:cs-1".parse().unwrap();
        let required = [RequiredAction {
            text: "Make the tests pass.".into(),
            finding: Some("f-1".parse().unwrap()),
            refs: vec![seen.clone(), unseen],
            from: "rules".into(),
        }];
        let texts = [(seen, PathBuf::from("/in/test.txt"))];
        let brief = Brief {
            spec: &spec,
            step: "fix",
            prompt: "Mend sum.sh.",
            attempt: 2,
            told: Some("The files are those of checkpoint cp-7."),
            required: &required,
            citable: Vec::new(),
            texts: &texts,
        };
        let text = write(&brief);
        for part in [
            "The total must be right.",
            "Step `fix`, attempt 2",
            "Mend sum.sh.",
            "1. Make the tests pass. (from rules, finding `f-1`)",
            "see `test:unit-1`: /in/test.txt",
            "see `diff:cs-1`\n",
            "Specification (spec.md)\n\nSums are exact.",
            "`api` (version 2): Keep the names.",
            "CHECKREIN_RESULT",
        ] {
            assert!(text.contains(part), "{part:?} is missing in:\n{text}");
        }
    }

    #[test]
    fn the_example_of_a_result_file_is_one() {
        let spec = spec();
        let brief = Brief {
            spec: &spec,
            step: "fix",
            prompt: "x",
            attempt: 1,
            told: None,
            required: &[],
            citable: Vec::new(),
            texts: &[],
        };
        let text = write(&brief);
        let example = text.lines().find(|line| line.starts_with("    {")).unwrap();
        let file = checkrein_shared::records::ResultFile::parse(example.trim().as_bytes()).unwrap();
        assert_eq!(file.claims.len(), 1);
        assert!(!text.contains("Required actions"));
    }
}
