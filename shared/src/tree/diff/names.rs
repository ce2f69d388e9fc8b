//! Which files are written by tools: lock files and minified bundles.
//!
//! Names are compared whole (a suffix rule would catch `evil.lock` too), and
//! nothing inside a file can make it count as generated. Folding only shortens
//! the text for people: every file is hashed and part of the changeset.

const LOCKS: [&str; 21] = [
    "Cargo.lock",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "deno.lock",
    "poetry.lock",
    "Pipfile.lock",
    "uv.lock",
    "pdm.lock",
    "pixi.lock",
    "composer.lock",
    "Gemfile.lock",
    "go.sum",
    "flake.lock",
    "mix.lock",
    "pubspec.lock",
    "gradle.lockfile",
    "packages.lock.json",
    "Podfile.lock",
];

const GENERATED_ENDINGS: [&str; 4] = [".min.js", ".min.css", ".js.map", ".css.map"];

/// Whether a file of this name (one component) is a lock file or a minified bundle.
pub fn is_generated(name: &[u8]) -> bool {
    LOCKS.iter().any(|lock| name == lock.as_bytes())
        || GENERATED_ENDINGS.iter().any(|ending| name.ends_with(ending.as_bytes()))
}
