//! The commit that a target's repository stands at, for the record only.
//!
//! It reads git's files and runs nothing. A repository that it can't read has
//! no commit as far as checkpoints are concerned; nothing depends on it.

use std::fs;
use std::path::{Path, PathBuf};

/// The largest file of git's that is read here.
const BYTES_MAX: u64 = 16 << 20;

/// The commit of `HEAD`; `None` where there is no repository at `target`, or no commit in it.
pub(crate) fn commit(target: &Path) -> Option<String> {
    let directory = git_directory(target)?;
    let head = read(&directory.join("HEAD"))?;
    match head.trim_end().strip_prefix("ref: ") {
        None => as_commit(&head),
        Some(name) => reference(&directory, name),
    }
}

/// `.git` itself, or what it points to in worktrees and submodules.
fn git_directory(target: &Path) -> Option<PathBuf> {
    let path = target.join(".git");
    if path.is_dir() {
        return Some(path);
    }
    let text = read(&path)?;
    Some(target.join(text.trim_end().strip_prefix("gitdir: ")?))
}

/// A branch: its own file, or a line of the packed ones; worktrees keep both elsewhere.
fn reference(directory: &Path, name: &str) -> Option<String> {
    if name.split('/').any(|part| part == ".." || part.is_empty()) {
        return None;
    }
    let common = read(&directory.join("commondir")).map(|text| directory.join(text.trim_end()));
    let places = [Some(directory.to_owned()), common];
    places.into_iter().flatten().find_map(|place| {
        let loose = read(&place.join(name)).and_then(|text| as_commit(&text));
        loose.or_else(|| packed(&read(&place.join("packed-refs"))?, name))
    })
}

fn packed(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.split_once(' ').is_some_and(|(_, of)| of == name))?;
    as_commit(line.split_once(' ')?.0)
}

fn as_commit(text: &str) -> Option<String> {
    let text = text.trim_end();
    let is_commit = matches!(text.len(), 40 | 64) && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_commit.then(|| text.to_owned())
}

fn read(path: &Path) -> Option<String> {
    let small = fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() <= BYTES_MAX);
    if small { fs::read_to_string(path).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn repository(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn a_commit_is_found_wherever_git_keeps_it() {
        let packed = format!("# pack-refs with: peeled\n{COMMIT} refs/heads/main\n");
        for files in [
            vec![(".git/HEAD", COMMIT)],
            vec![(".git/HEAD", "ref: refs/heads/main\n"), (".git/refs/heads/main", COMMIT)],
            vec![(".git/HEAD", "ref: refs/heads/main\n"), (".git/packed-refs", &packed)],
            vec![
                (".git", "gitdir: ../main/.git/worktrees/w\n"),
                ("../main/.git/worktrees/w/HEAD", "ref: refs/heads/main\n"),
                ("../main/.git/worktrees/w/commondir", "../..\n"),
                ("../main/.git/refs/heads/main", COMMIT),
            ],
        ] {
            let files: Vec<_> = files.iter().map(|(p, t)| (format!("w/{p}"), *t)).collect();
            let files: Vec<_> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
            let dir = repository(&[&[("w/x", "")], &files[..]].concat());
            assert_eq!(commit(&dir.path().join("w")).as_deref(), Some(COMMIT), "{files:?}");
        }
    }

    #[test]
    fn anything_else_is_no_commit() {
        for files in [
            vec![("a", "")],
            vec![(".git/HEAD", "ref: refs/heads/unborn\n")],
            vec![(".git/HEAD", "ref: ../../etc/passwd\n")],
            vec![(".git/HEAD", "0123\n")],
            vec![(".git", "gitdir: ../nowhere\n")],
        ] {
            assert_eq!(commit(repository(&files).path()), None, "{files:?}");
        }
    }
}
