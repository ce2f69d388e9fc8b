//! Which file names say that a file holds secrets.
//!
//! This is the one list. A file so named is sealed where it is not part of the
//! project's history: its digest counts, its bytes stay where they are. The
//! list judges names only; secrets in other files are the redactor's business.

/// Whole names, in lower case.
const NAMES: [&str; 24] = [
    ".env",
    ".envrc",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".htpasswd",
    ".git-credentials",
    ".dockercfg",
    ".vault-token",
    ".s3cfg",
    ".boto",
    "credentials",
    "credentials.json",
    "credentials.toml",
    "service-account.json",
    "secrets.json",
    "secrets.yaml",
    "secrets.yml",
    "secrets.toml",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
];

/// Endings, in lower case.
const ENDINGS: [&str; 10] =
    [".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".agekey", ".tfstate"];

/// What follows `.env` in names that hold no values: templates that projects publish.
const ENV_TEMPLATES: [&str; 6] = [".example", ".sample", ".template", ".dist", ".defaults", ".schema"];

/// Whether a file of this name (one component) is taken to hold secrets.
pub fn is_secret_name(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    let is = |text: &str| name == text.as_bytes();
    if NAMES.iter().any(|text| is(text)) {
        return true;
    }
    // `.env.local`, `.env.production`, but not `.env.example`; and `prod.env`.
    if let Some(rest) = name.strip_prefix(b".env.") {
        return !ENV_TEMPLATES.iter().any(|t| rest.ends_with(&t.as_bytes()[1..]));
    }
    name.ends_with(b".env") || ENDINGS.iter().any(|ending| name.ends_with(ending.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_names_and_near_misses() {
        for yes in [".env", ".ENV", ".env.local", "prod.env", "server.pem", "id_rsa", "credentials", "x.KEY"] {
            assert!(is_secret_name(yes.as_bytes()), "{yes}");
        }
        for no in [".env.example", ".environment", "env.rs", "id_rsa.pub", "keyboard.rs", "pem.md", "tokens.rs"] {
            assert!(!is_secret_name(no.as_bytes()), "{no}");
        }
    }
}
