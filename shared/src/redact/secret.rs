//! A value that must not be shown.

use std::fmt;

use zeroize::Zeroizing;

/// A secret value. It has no `Display`, can't be serialised, shows nothing in `Debug`, and is wiped when dropped.
///
/// White space at its end is cut off: a newline behind a key read from a file belongs to no key, and would end up in
/// error messages.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes over a value.
    pub fn new(value: impl Into<Vec<u8>>) -> Self {
        let mut value = Zeroizing::new(value.into());
        while value.last().is_some_and(u8::is_ascii_whitespace) {
            value.pop();
        }
        Self(value)
    }

    /// The value itself. Whoever calls this answers for where it goes.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_nothing_and_loses_its_newline() {
        let secret = Secret::new("hunter2\r\n");
        assert_eq!(secret.expose(), b"hunter2");
        assert_eq!(format!("{secret:?} {:#?}", Some(&secret)), "[redacted] Some(\n    [redacted],\n)");
    }
}
