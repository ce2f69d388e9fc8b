//! Where a user's tools keep what they need, for verifiers that have an empty home.
//!
//! Toolchain managers look below the home folder and find nothing in a private
//! one. The variables given here lead them to the real place. Credentials that lie
//! there are named, so that they can be hidden.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What verifiers need of a user's tools, for [`crate::ReviewerConfig`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tools {
    /// For `tools_env`.
    pub env: BTreeMap<OsString, OsString>,
    /// For `hidden`: files with credentials.
    pub hidden: Vec<PathBuf>,
}

/// A variable, the folder that its tool uses without it (below home, where it has one), and the credentials in there.
const PLACES: [(&str, Option<&str>, &[&str]); 10] = [
    ("CARGO_HOME", Some(".cargo"), &["credentials", "credentials.toml"]),
    ("RUSTUP_HOME", Some(".rustup"), &[]),
    ("GOPATH", Some("go"), &[]),
    ("GOROOT", None, &[]),
    ("JAVA_HOME", None, &[]),
    ("NVM_DIR", Some(".nvm"), &[]),
    ("PYENV_ROOT", Some(".pyenv"), &[]),
    ("RBENV_ROOT", Some(".rbenv"), &[]),
    ("VOLTA_HOME", Some(".volta"), &[]),
    ("DOTNET_ROOT", None, &[]),
];

/// Variables that choose among installed tools.
const CHOICES: [&str; 1] = ["RUSTUP_TOOLCHAIN"];

/// Files with credentials that tools keep in the home folder itself.
const CREDENTIALS: [&str; 14] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".claude",
    ".codex",
];

impl Tools {
    /// Looks at the environment and the home folder of the user who runs the reviewer.
    pub fn find(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let home = variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let mut tools = Self::default();
        for (name, usual, credentials) in PLACES {
            let usual = || home.as_deref().zip(usual).map(|(home, usual)| home.join(usual));
            let Some(place) = variable(name).map(PathBuf::from).or_else(usual).filter(|place| place.is_dir()) else {
                continue;
            };
            tools.hidden.extend(existing(&place, credentials));
            tools.env.insert(name.into(), place.into());
        }
        for name in CHOICES {
            tools.env.extend(variable(name).map(|value| (name.into(), value)));
        }
        if let Some(home) = home {
            tools.hidden.extend(existing(&home, &CREDENTIALS));
        }
        tools
    }
}

fn existing(folder: &Path, names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| folder.join(name)).filter(|path| path.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_found_by_variable_or_in_their_usual_place_and_credentials_are_hidden() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        for folder in [".cargo", "elsewhere", ".ssh"] {
            std::fs::create_dir(home.join(folder)).unwrap();
        }
        std::fs::write(home.join(".cargo/credentials.toml"), "").unwrap();
        let tools = Tools::find(|name| match name {
            "HOME" => Some(home.into()),
            "RUSTUP_HOME" => Some(home.join("elsewhere").into()),
            "JAVA_HOME" => Some("/no/such/folder".into()),
            "AWS_SECRET_ACCESS_KEY" => panic!("credentials are never asked for"),
            _ => None,
        });
        let expected = [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", "elsewhere")];
        assert_eq!(tools.env, expected.map(|(name, folder)| (name.into(), home.join(folder).into())).into());
        assert_eq!(tools.hidden, [home.join(".cargo/credentials.toml"), home.join(".ssh")]);
        assert_eq!(Tools::find(|_| None), Tools::default());
    }
}
