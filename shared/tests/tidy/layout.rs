//! Which crate may use which, which module knows which foreign thing, and that
//! no file lies outside every module.

use std::collections::BTreeSet;

use crate::assert_none;
use crate::lexer::{code_only, word_positions};
use crate::repository::{File, files, members, rust_sources};

/// Foreign things that one module knows and hides behind our own types.
const FOREIGN: &[&str] =
    &["axum", "cel", "ed25519_dalek", "lapin", "reqwest", "rust_embed", "serde_saphyr", "similar", "sled"];

/// The crates that one crate may use: `shared` is below the roles, `cli` above them.
fn allowed(member: &str) -> &'static [&'static str] {
    match member {
        "shared" => &[],
        "worker" | "reviewer" | "orchestrator" => &["shared"],
        "cli" => &["shared", "worker", "reviewer", "orchestrator"],
        _ => panic!("say in this test which crates `{member}` may use"),
    }
}

fn manifest<'a>(files: &'a [File], member: &str) -> &'a str {
    let path = format!("{member}/Cargo.toml");
    files.iter().find(|f| f.path == path).and_then(|f| f.text.as_deref()).expect("every member has a Cargo.toml")
}

#[test]
fn the_roles_do_not_use_one_another() {
    let files = files();
    let mut wrong = Vec::new();
    for member in members(&files) {
        let used = manifest(&files, &member).lines().filter_map(|l| l.trim_start().strip_prefix("checkrein-"));
        for name in used.map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()) {
            // For its own tests a crate may switch on a feature of itself.
            if name != member && !allowed(&member).contains(&name) {
                wrong.push(format!("{member}/Cargo.toml: `{member}` must not use `{name}`"));
            }
        }
    }
    assert_none(wrong);
}

#[test]
fn every_crate_takes_the_workspaces_lints() {
    let files = files();
    let without = members(&files).into_iter().filter(|m| !manifest(&files, m).contains("[lints]\nworkspace = true\n"));
    assert_none(without.map(|m| format!("{m}/Cargo.toml: add `[lints]` with `workspace = true`")).collect());
}

/// The path of the module that a file holds, without `.rs` and `mod.rs`.
fn module(path: &str) -> Vec<&str> {
    let path = path.trim_end_matches(".rs");
    path.trim_end_matches("/mod").split('/').collect()
}

fn common<'a>(one: &[&'a str], other: &[&'a str]) -> Vec<&'a str> {
    one.iter().zip(other).take_while(|(a, b)| a == b).map(|(a, _)| *a).collect()
}

#[test]
fn one_module_knows_each_foreign_thing() {
    let files = files();
    let sources: Vec<(&str, String)> = rust_sources(&files)
        .into_iter()
        .filter(|(path, _)| path.contains("/src/"))
        .map(|(path, text)| (path, code_only(text)))
        .collect();
    let mut wrong = Vec::new();
    for foreign in FOREIGN {
        let names = |code: &str| word_positions(code, foreign).any(|at| begins_path(code, at, foreign.len()));
        let known: Vec<&str> = sources.iter().filter(|(_, code)| names(code)).map(|(path, _)| *path).collect();
        let shared = known.iter().map(|path| module(path)).reduce(|one, other| common(&one, &other));
        // `crate/src/module` has three parts: less means that two modules know it.
        if shared.is_some_and(|parts| parts.len() < 3) {
            wrong.push(format!("`{foreign}` is known in more than one module: {}", known.join(", ")));
        }
    }
    assert_none(wrong);
}

/// Whether the word begins a path such as `sled::Db`, and is not itself inside one.
fn begins_path(code: &str, at: usize, length: usize) -> bool {
    code[at + length..].starts_with("::") && !code[..at].ends_with("::")
}

#[test]
fn every_source_file_belongs_to_a_module() {
    let files = files();
    let sources = rust_sources(&files);
    let all: BTreeSet<&str> = sources.iter().map(|(path, _)| *path).collect();
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let mut waiting: Vec<String> = all.iter().filter(|p| is_root(p)).map(|p| (*p).to_owned()).collect();
    while let Some(path) = waiting.pop() {
        let Some((_, text)) = sources.iter().find(|(p, _)| *p == path) else { continue };
        if reached.insert(path.clone()) {
            waiting.extend(children(&path, text));
        }
    }
    let dead = all.into_iter().filter(|p| !reached.contains(*p));
    assert_none(dead.map(|p| format!("{p}: no module names it: add a `mod` line or delete it")).collect());
}

/// Whether cargo compiles the file by itself.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    matches!(
        parts[..],
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["src", "bin", _]
            | ["tests" | "benches" | "examples", _]
            | ["tests" | "benches" | "examples", _, "main.rs"]
    )
}

/// The files that the `mod` lines of a file may mean, and those that `#[path]` names.
fn children(path: &str, text: &str) -> Vec<String> {
    let code = code_only(text);
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let own = is_root(path) || path.ends_with("/mod.rs");
    let base = if own { folder.to_owned() } else { path.trim_end_matches(".rs").to_owned() };
    let declared = word_positions(&code, "mod").filter_map(|at| {
        let (name, _) = code[at + 3..].split_once([';', '{'])?;
        let is_name = name.trim().chars().all(|c| c.is_alphanumeric() || c == '_');
        is_name.then(|| name.trim().to_owned())
    });
    let named = text.lines().filter_map(|l| l.trim().strip_prefix("#[path = \"")?.strip_suffix("\"]"));
    let named: Vec<String> = named.map(|name| format!("{folder}/{name}")).collect();
    declared.flat_map(|name| [format!("{base}/{name}.rs"), format!("{base}/{name}/mod.rs")]).chain(named).collect()
}
