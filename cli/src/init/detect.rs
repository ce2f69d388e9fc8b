//! Which kind of project stands in a folder, and how its tests run.

use std::path::Path;

use crate::args::ProjectKind;
use crate::failure::Failure;

/// The most that is read of a file that says how tests run, in bytes.
const READ_MAX: u64 = 1 << 20;

/// A project, as the policy's template needs it.
pub(super) struct Project {
    kind: ProjectKind,
    /// The command that runs its tests.
    pub(super) test: Vec<&'static str>,
    /// Folders that its tests need and that git does not have.
    pub(super) carry: Vec<&'static str>,
    /// The tests themselves: taken from the base, so that an agent can't weaken them.
    pub(super) tests: Vec<&'static str>,
}

impl Project {
    /// The word for it.
    pub(super) fn name(&self) -> &'static str {
        name(self.kind)
    }
}

fn name(kind: ProjectKind) -> &'static str {
    match kind {
        ProjectKind::Cargo => "cargo",
        ProjectKind::Npm => "npm",
        ProjectKind::Pytest => "pytest",
        ProjectKind::Go => "go",
        ProjectKind::Make => "make",
    }
}

/// The kinds and the files that tell them, the surest first.
const SIGNS: [(ProjectKind, &[&str]); 5] = [
    (ProjectKind::Cargo, &["Cargo.toml"]),
    (ProjectKind::Npm, &["package.json"]),
    (ProjectKind::Pytest, &["pytest.ini", "pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "conftest.py"]),
    (ProjectKind::Go, &["go.mod"]),
    (ProjectKind::Make, &["Makefile", "GNUmakefile", "makefile"]),
];

/// The kind of the project in a folder; a Makefile counts only where nothing else does.
pub(super) fn detect(folder: &Path) -> Result<ProjectKind, Failure> {
    let has = |names: &[&str]| names.iter().any(|name| folder.join(name).is_file());
    // A Makefile that only builds says nothing about tests.
    let counts = |kind: ProjectKind| kind != ProjectKind::Make || make_target(folder).is_some();
    let found: Vec<ProjectKind> =
        SIGNS.iter().filter(|(kind, names)| has(names) && counts(*kind)).map(|(kind, _)| *kind).collect();
    let languages: Vec<ProjectKind> = found.iter().copied().filter(|kind| *kind != ProjectKind::Make).collect();
    match (languages.as_slice(), found.as_slice()) {
        ([one], _) | ([], [one]) => Ok(*one),
        ([], _) => Err(Failure::usage("this folder holds no project of a kind that is known")
            .at(folder.display())
            .hint("say which with --kind cargo|npm|pytest|go|make, and edit the verifier that is written")),
        (several, _) => {
            let names: Vec<&str> = several.iter().map(|kind| name(*kind)).collect();
            Err(Failure::usage(format!("this folder holds projects of several kinds: {}", names.join(", ")))
                .at(folder.display())
                .hint(format!("say which with --kind {}", names.join("|"))))
        }
    }
}

/// How the tests of such a project run here.
pub(super) fn look(folder: &Path, kind: ProjectKind) -> Project {
    let is_dir = |name: &&str| folder.join(name).is_dir();
    let present = |names: &[&'static str]| names.iter().copied().filter(is_dir).collect::<Vec<_>>();
    match kind {
        ProjectKind::Cargo => Project {
            kind,
            test: vec!["cargo", "test", "--offline"],
            carry: present(&["vendor"]),
            tests: vec!["tests/**", "**/tests/**"],
        },
        ProjectKind::Npm => Project {
            kind,
            test: vec!["npm", "test"],
            carry: present(&["node_modules"]),
            tests: vec!["**/*.test.*", "**/*.spec.*", "**/test.*", "test/**", "tests/**", "**/__tests__/**"],
        },
        ProjectKind::Pytest => Project {
            kind,
            test: pytest(folder),
            carry: present(&[".venv", "venv"]),
            tests: vec![
                "tests/**",
                "test/**",
                "**/test.py",
                "**/tests.py",
                "**/test_*.py",
                "**/*_test.py",
                "**/conftest.py",
            ],
        },
        ProjectKind::Go => Project {
            kind,
            test: vec!["go", "test", "./..."],
            carry: present(&["vendor"]),
            tests: vec!["**/*_test.go", "**/testdata/**"],
        },
        ProjectKind::Make => Project {
            kind,
            test: vec!["make", make_target(folder).unwrap_or("test")],
            carry: Vec::new(),
            tests: vec!["test/**", "tests/**", "Makefile"],
        },
    }
}

/// pytest of the project's own environment, where it has one.
fn pytest(folder: &Path) -> Vec<&'static str> {
    let own = [".venv/bin/python", "venv/bin/python"].into_iter().find(|python| folder.join(python).exists());
    vec![own.unwrap_or("python3"), "-m", "pytest", "-q"]
}

/// `test` or `check`, whichever the Makefile has.
fn make_target(folder: &Path) -> Option<&'static str> {
    let text = ["GNUmakefile", "makefile", "Makefile"].into_iter().find_map(|name| read(&folder.join(name)));
    let text = text.unwrap_or_default();
    let has = |target: &str| {
        text.lines().any(|line| line.strip_prefix(target).is_some_and(|rest| rest.trim_start().starts_with(':')))
    };
    ["test", "check"].into_iter().find(|target| has(target))
}

fn read(path: &Path) -> Option<String> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(READ_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn every_kind_is_told_by_its_files() {
        for (file, text, wanted, test) in [
            ("Cargo.toml", "", ProjectKind::Cargo, "cargo test --offline"),
            ("package.json", "", ProjectKind::Npm, "npm test"),
            ("pyproject.toml", "", ProjectKind::Pytest, "python3 -m pytest -q"),
            ("go.mod", "", ProjectKind::Go, "go test ./..."),
            ("Makefile", "test:\n\ttrue\n", ProjectKind::Make, "make test"),
        ] {
            let root = folder(&[(file, text)]);
            let kind = detect(root.path()).unwrap();
            assert_eq!(kind, wanted);
            assert_eq!(look(root.path(), kind).test.join(" "), test);
        }
    }

    #[test]
    fn a_makefile_beside_a_language_is_no_second_kind() {
        let root = folder(&[("Cargo.toml", ""), ("Makefile", "")]);
        assert_eq!(detect(root.path()).unwrap(), ProjectKind::Cargo);
    }

    #[test]
    fn what_can_not_be_told_is_asked() {
        assert!(detect(folder(&[]).path()).unwrap_err().what().contains("no project"));
        let builds_only = folder(&[("Makefile", "all:\n\ttrue\n")]);
        assert!(detect(builds_only.path()).unwrap_err().what().contains("no project"));
        let both = folder(&[("Cargo.toml", ""), ("package.json", "")]);
        assert!(detect(both.path()).unwrap_err().what().contains("cargo, npm"));
    }

    #[test]
    fn the_environment_of_the_project_is_used_and_carried() {
        let root = folder(&[("setup.py", ""), (".venv/bin/python", "")]);
        let project = look(root.path(), ProjectKind::Pytest);
        assert_eq!((project.test[0], project.carry), (".venv/bin/python", vec![".venv"]));
        let root = folder(&[("Makefile", "check : all\n\ttrue\n")]);
        assert_eq!(look(root.path(), ProjectKind::Make).test, ["make", "check"]);
    }
}
