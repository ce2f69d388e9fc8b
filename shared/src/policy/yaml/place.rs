//! Finds the place in a file that an offset within a scalar's value stands for.
//!
//! Folded lines, indentation and quotes make the value differ from what stands
//! in the file; after an escape sequence the column can be a few characters off.

use super::tree::{Node, Place};

/// Where the byte `offset` of the scalar's `value` stands in the file.
pub(crate) fn locate(node: &Node, value: &str, offset: usize) -> Place {
    let mut raw = node.raw.chars().peekable();
    let mut place = node.at;
    if raw.peek().is_some_and(|c| matches!(c, '"' | '\'')) {
        raw.next();
        place.column += 1;
    }
    for expected in value.char_indices().take_while(|(at, _)| *at < offset).map(|(_, c)| c) {
        // Any run of white space in the value may be another run in the file.
        while raw.peek().is_some_and(|c| c.is_whitespace() && !expected.is_whitespace()) {
            step(&mut place, raw.next());
        }
        let found = raw.next();
        step(&mut place, found);
        let escaped = found == Some('\\') && expected != '\\' || found == Some('\'') && expected == '\'';
        if escaped {
            step(&mut place, raw.next());
        }
    }
    while value[..].get(offset..).is_some_and(|rest| !rest.starts_with(char::is_whitespace))
        && raw.peek().is_some_and(|c| c.is_whitespace())
    {
        step(&mut place, raw.next());
    }
    place
}

fn step(place: &mut Place, passed: Option<char>) {
    match passed {
        Some('\n') => *place = Place { line: place.line + 1, column: 1 },
        Some(_) => place.column += 1,
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Segment, parse};
    use super::*;

    fn place_of(yaml: &str, word: &str) -> (u64, u64) {
        let root = parse("f", yaml.as_bytes()).unwrap();
        let node = root.find(&[Segment::Key("when".into())]).unwrap();
        let value: String = super::super::read(node).unwrap();
        let place = locate(node, &value, value.find(word).unwrap());
        (place.line, place.column)
    }

    #[test]
    fn offsets_are_found_in_every_style() {
        assert_eq!(place_of("when: a && bad\n", "bad"), (1, 12));
        assert_eq!(place_of("when: \"a && bad\"\n", "bad"), (1, 13));
        assert_eq!(place_of("x: 1\nwhen: |\n  a &&\n    bad\n", "bad"), (4, 5));
        assert_eq!(place_of("when: >-\n  a &&\n  b &&\n  bad\n", "bad"), (4, 3));
        assert_eq!(place_of("when: a &&\n   bad\n", "bad"), (2, 4));
        assert_eq!(place_of("when: 'x == ''y'' && bad'\n", "bad"), (1, 22));
    }
}
