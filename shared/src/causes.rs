//! An error and what caused it, as one line for people and logs.

use std::error::Error;

/// The error's text and those of its causes, each said once, with colons between them.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        // Transparent wrappers say the same as what they wrap.
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Outer {
        #[error("the file can't be read")]
        Named(#[source] io::Error),
        #[error(transparent)]
        Same(#[from] io::Error),
    }

    #[test]
    fn every_cause_is_said_once() {
        let cause = || io::Error::other("the disk is gone");
        assert_eq!(with_causes(&Outer::Named(cause())), "the file can't be read: the disk is gone");
        assert_eq!(with_causes(&Outer::Same(cause())), "the disk is gone");
    }
}
