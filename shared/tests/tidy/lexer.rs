//! Tells code from comments and literals, and finds functions. It knows no more
//! of Rust's grammar than that takes.

/// The text with comments, strings and characters blanked out; line breaks stay.
pub(crate) fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = skip(&chars, at);
        if end == at {
            code.push(chars[at]);
            at += 1;
        } else {
            code.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    code
}

/// Where the comment or literal ends that begins at `at`; `at` itself where none does.
fn skip(chars: &[char], at: usize) -> usize {
    let next = |ahead: usize| chars.get(at + ahead).copied();
    match (chars[at], next(1)) {
        ('/', Some('/')) => chars[at..].iter().position(|c| *c == '\n').map_or(chars.len(), |n| at + n),
        ('/', Some('*')) => block_comment(chars, at),
        ('"', _) => quoted(chars, at + 1, '"'),
        ('r', Some('"' | '#')) if starts_word(chars, at) => raw_string(chars, at + 1).unwrap_or(at),
        ('b' | 'c', Some('r')) if starts_word(chars, at) => raw_string(chars, at + 2).unwrap_or(at),
        ('\'', Some('\\')) => quoted(chars, at + 1, '\''),
        ('\'', Some(_)) if next(2) == Some('\'') => at + 3,
        _ => at,
    }
}

fn starts_word(chars: &[char], at: usize) -> bool {
    at == 0 || !is_word(chars[at - 1]) || (matches!(chars[at - 1], 'b' | 'c') && (at == 1 || !is_word(chars[at - 2])))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn block_comment(chars: &[char], start: usize) -> usize {
    let (mut depth, mut at) = (0usize, start);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    at
}

fn quoted(chars: &[char], start: usize, quote: char) -> usize {
    let mut at = start;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// Where the raw string ends whose `#`s or quote begin at `start`.
fn raw_string(chars: &[char], start: usize) -> Option<usize> {
    let hashes = chars[start..].iter().take_while(|c| **c == '#').count();
    if chars.get(start + hashes) != Some(&'"') {
        return None;
    }
    let closing =
        |at: usize| chars[at] == '"' && chars[at + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
    let end = (start + hashes + 1..chars.len()).find(|at| closing(*at)).map_or(chars.len(), |at| at + 1 + hashes);
    Some(end)
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Its name.
    pub(crate) name: String,
    /// The line of its `fn`, from 1.
    pub(crate) line: usize,
    /// How many lines it has, from `fn` to its closing brace.
    pub(crate) lines: usize,
}

/// Every function with a body, in what [`code_only`] left.
pub(crate) fn functions(code: &str) -> Vec<Function> {
    word_positions(code, "fn").filter_map(|at| function(code, at)).collect()
}

/// Where `word` stands as a whole word, in bytes.
pub(crate) fn word_positions<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

fn function(code: &str, at: usize) -> Option<Function> {
    let rest = code[at + 2..].trim_start();
    let name: String = rest.chars().take_while(|c| is_word(*c)).collect();
    if name.is_empty() {
        return None;
    }
    let body = body_start(&code[at..])?;
    let mut depth = 0usize;
    let end = code[at + body..].char_indices().find_map(|(offset, c)| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at + body + offset)
    });
    let end = end.unwrap_or(code.len());
    let line = code[..at].matches('\n').count() + 1;
    Some(Function { name, line, lines: code[at..end].matches('\n').count() + 1 })
}

/// Where the body begins; `None` for a declaration without one.
fn body_start(signature: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (offset, c) in signature.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '{' if depth == 0 => return Some(offset),
            ';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

#[test]
fn words_and_braces_in_comments_and_literals_are_no_code() {
    let text = "a // {\nb /* { /* } */ { */ c \"{ \\\" {\" d r#\"\"{\"# e '{' f '\\'' g br\"{\" 'x h<'a>(x: &'a str)";
    let code = code_only(text);
    assert!(!code.contains(['{', '}', '"', '/']), "{code}");
    let left: Vec<&str> = code.split_whitespace().collect();
    assert_eq!(left.join(" "), "a b c d e f g b 'x h<'a>(x: &'a str)".replace(" b 'x", " 'x"));
}

#[test]
fn functions_are_found_with_their_length() {
    let text = "trait T { fn a(x: [u8; 4]); }\nfn b() {\n  let c = |x| { x };\n}\ntype F = fn(u8);\npub fn d() {}";
    let found = functions(&code_only(text));
    let expected = [Function { name: "b".into(), line: 2, lines: 3 }, Function { name: "d".into(), line: 6, lines: 1 }];
    assert_eq!(found, expected);
}
