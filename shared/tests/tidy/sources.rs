//! Sizes, openings and leftovers of source files.

use crate::assert_none;
use crate::lexer::{code_only, functions, word_positions};
use crate::repository::{files, rust_sources};

/// The most lines of a Rust file. Most have 100 to 250.
const FILE_LINES_MAX: usize = 600;
/// The most lines of a function. One that fits a screen has 70.
const FUNCTION_LINES_MAX: usize = 100;

#[test]
fn no_source_file_is_too_long() {
    let files = files();
    let long = rust_sources(&files).into_iter().filter_map(|(path, text)| {
        let lines = text.lines().count();
        (lines > FILE_LINES_MAX).then(|| format!("{path}: {lines} lines; split it by idea below {FILE_LINES_MAX}"))
    });
    assert_none(long.collect());
}

#[test]
fn no_function_is_too_long() {
    let mut long = Vec::new();
    for (path, text) in rust_sources(&files()) {
        for function in functions(&code_only(text)).iter().filter(|f| f.lines > FUNCTION_LINES_MAX) {
            let (name, line, lines) = (&function.name, function.line, function.lines);
            long.push(format!("{path}:{line}: `{name}` has {lines} lines; split it below {FUNCTION_LINES_MAX}"));
        }
    }
    assert_none(long);
}

#[test]
fn every_module_says_what_it_is_for() {
    let files = files();
    // What a file with a module's tests is for, its name says.
    let is_test = |path: &str| path.contains("/src/") && (path.ends_with("tests.rs") || path.contains("/tests/"));
    let modules = rust_sources(&files).into_iter().filter(|(path, _)| !is_test(path));
    let silent = modules.filter_map(|(path, text)| {
        let words = text.lines().map_while(|l| l.strip_prefix("//!")).flat_map(str::split_whitespace).count();
        (words < 2).then(|| format!("{path}: open it with `//!` and a sentence on what it is for"))
    });
    assert_none(silent.collect());
}

#[test]
fn no_leftover_marker_stays_behind() {
    // Put together here, so that this file has none itself.
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    let macros = [concat!("dbg", "!("), concat!("todo", "!("), concat!("unimplemented", "!(")];
    let mut found = Vec::new();
    for file in &files() {
        let Some(text) = file.text.as_deref().filter(|_| file.path != "Cargo.lock") else { continue };
        for (number, line) in text.lines().enumerate() {
            let marked = words.iter().any(|w| word_positions(line, w).next().is_some());
            if marked || (file.path.ends_with(".rs") && macros.iter().any(|m| line.contains(m))) {
                found.push(format!("{}:{}: a leftover: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    assert_none(found);
}

#[test]
fn no_path_of_one_machine_is_written_down() {
    let mut found = Vec::new();
    for file in &files() {
        let Some(text) = file.text.as_deref() else { continue };
        for (number, line) in text.lines().enumerate() {
            for folder in [concat!("/wo", "rk/"), concat!("/ro", "ot/")] {
                let begins = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-*/}".contains(c));
                if line.match_indices(folder).any(|(at, _)| begins(at)) {
                    found.push(format!("{}:{}: a path of one machine: {}", file.path, number + 1, line.trim()));
                }
            }
        }
    }
    assert_none(found);
}

#[test]
fn scripts_can_be_executed_and_nothing_else_can() {
    let wrong = files().into_iter().filter_map(|file| {
        let script = file.text.as_deref().is_some_and(|t| t.starts_with("#!/"));
        match (script, file.executable) {
            (true, false) => Some(format!("{}: a script that can't be executed: chmod +x", file.path)),
            (false, true) => Some(format!("{}: executable, but it does not begin with `#!`", file.path)),
            _ => None,
        }
    });
    assert_none(wrong.collect());
}

#[test]
fn text_files_end_with_one_line_break_and_have_no_trailing_space() {
    let mut wrong = Vec::new();
    for file in &files() {
        for kind in ["rs", "toml", "md"] {
            let Some((path, text)) = file.with_extension(kind) else { continue };
            if !text.ends_with('\n') || text.ends_with("\n\n") || text.contains('\r') {
                wrong.push(format!("{path}: end it with one line break, and use no carriage returns"));
            }
            let spaced = text.lines().position(|l| l.ends_with([' ', '\t']));
            wrong.extend(spaced.map(|n| format!("{path}:{}: trailing space", n + 1)));
        }
    }
    assert_none(wrong);
}
