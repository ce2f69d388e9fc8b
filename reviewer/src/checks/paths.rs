//! Checks that look at nothing but which paths a change touches.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use checkrein_shared::records::Severity;
use checkrein_shared::tree::RelPath;

use crate::check::{Check, Raised};
use crate::globs::Globs;
use crate::subject::Subject;

/// What decides about changes, or runs by itself when one is merged.
static DECIDERS: LazyLock<Globs> = LazyLock::new(|| {
    Globs::known(&[
        "**/.github/**",
        "**/.gitlab-ci.y*ml",
        "**/.gitlab/**",
        "**/Jenkinsfile*",
        "**/.circleci/**",
        "**/.travis.y*ml",
        "**/azure-pipelines*.y*ml",
        "**/bitbucket-pipelines.y*ml",
        "**/.buildkite/**",
        "**/.drone.y*ml",
        "**/.woodpecker/**",
        "**/.woodpecker.y*ml",
        "**/.forgejo/**",
        "**/.gitea/**",
        "**/.ci/**",
        "**/.husky/**",
        "**/.githooks/**",
        "**/.pre-commit-config.y*ml",
        "**/lefthook.y*ml",
        "**/CODEOWNERS",
        "**/.gitattributes",
        "**/.checkrein/**",
        "**/checkrein.y*ml",
        "**/*.checkrein.y*ml",
    ])
});

/// Policy files and what runs in continuous integration.
pub(super) fn policy_or_ci(subject: &Subject) -> Vec<Raised> {
    let hits = touched(subject, |path| DECIDERS.matches(path) || is_policy_file(subject, path));
    hits.into_iter()
        .map(|path| {
            let claim =
                format!("the change touches `{path}`, which decides how changes are checked or what runs by itself");
            Raised::new(Check::PolicyOrCi, Severity::High, claim, vec![subject.at(path)])
                .act(format!("Undo the change of `{path}`, or leave it to a person to make."))
        })
        .collect()
}

/// Whether one of the files that the task's policy was read from stands in the workspace itself.
fn is_policy_file(subject: &Subject, path: &RelPath) -> bool {
    subject.base.get(path).is_some_and(|entry| subject.settings.policy_files.contains(&entry.content_digest()))
}

/// Paths that no change may touch.
pub(super) fn protected(subject: &Subject) -> Vec<Raised> {
    touched(subject, |path| subject.settings.protect.matches(path))
        .into_iter()
        .map(|path| {
            let claim = format!("the change touches `{path}`, which the policy protects");
            Raised::new(Check::Protected, Severity::Critical, claim, vec![subject.at(path)])
                .act(format!("Undo the change of `{path}`: the policy protects it."))
        })
        .collect()
}

fn touched(subject: &Subject, wanted: impl Fn(&RelPath) -> bool) -> BTreeSet<&RelPath> {
    // Both ends of a rename count: to move a protected file away is to remove it.
    subject.changeset.touched().into_iter().filter(|path| wanted(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sample;

    #[test]
    fn what_decides_about_changes_is_raised_wherever_it_stands() {
        for (path, expected) in [
            (".github/workflows/ci.yml", 1),
            ("sub/.github/CODEOWNERS", 1),
            (".gitlab-ci.yml", 1),
            ("Jenkinsfile", 1),
            (".ci/run", 1),
            (".pre-commit-config.yaml", 1),
            ("checkrein.yaml", 1),
            ("src/ci.rs", 0),
            ("docs/github/index.md", 0),
            ("Jenkins.md", 0),
        ] {
            assert_eq!(policy_or_ci(&Sample::new().tree(path, "x\n").subject()).len(), expected, "{path}");
        }
    }

    #[test]
    fn the_policy_file_of_the_task_itself_is_raised() {
        let mut subject = Sample::new().base("gate.yaml", "strict\n").tree("gate.yaml", "lax\n").subject();
        assert!(policy_or_ci(&subject).is_empty());
        subject.settings.policy_files = [checkrein_shared::digest::Digest::of("strict\n")].into();
        assert_eq!(policy_or_ci(&subject).len(), 1);
    }

    #[test]
    fn protected_paths_are_raised_also_when_they_are_moved_away() {
        let mut subject = Sample::new().base("ledger/book", "1234\n").tree("elsewhere", "1234\n").subject();
        subject.settings.protect = Globs::known(&["ledger/**"]);
        assert_eq!(protected(&subject).len(), 1);
        subject.settings.protect = Globs::known(&["ledgers/**"]);
        assert!(protected(&subject).is_empty());
    }
}
