//! The types that expressions are checked with.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    Bool,
    Int,
    Text,
    /// Text out of a closed vocabulary.
    Word(&'static Vocabulary),
    List(Box<Type>),
    /// Text to values of one type; a key may be absent.
    Map(Box<Type>),
    Object(Arc<Object>),
    /// Anything: what a tool's arguments hold. Checked when it is used.
    Any,
}

/// A closed vocabulary.
#[derive(Debug, PartialEq)]
pub(crate) struct Vocabulary {
    /// What one of its words is called, with its article.
    pub(crate) name: &'static str,
    pub(crate) words: &'static [&'static str],
    /// Whether `<` and `>` mean something.
    pub(crate) ordered: bool,
}

/// A mapping with known keys.
#[derive(Debug, PartialEq)]
pub(crate) struct Object {
    /// What it is called in messages.
    pub(crate) name: String,
    pub(crate) fields: BTreeMap<String, Type>,
    /// Whether it is a map whose possible keys are known: any may be absent, and all values are of type `item`.
    pub(crate) partial: bool,
    pub(crate) item: Type,
}

impl Type {
    pub(crate) fn list(item: Self) -> Self {
        Self::List(Box::new(item))
    }

    pub(crate) fn object<const N: usize>(name: &str, fields: [(&str, Self); N]) -> Self {
        let fields = fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect();
        Self::Object(Arc::new(Object { name: name.to_owned(), fields, partial: false, item: Self::Any }))
    }

    /// Whether values of the two types can be equal.
    pub(super) fn comparable(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) | (_, Self::Any) => true,
            (Self::Text | Self::Word(_), Self::Text | Self::Word(_)) => true,
            (Self::List(a), Self::List(b)) => a.comparable(b),
            (Self::Bool, Self::Bool) | (Self::Int, Self::Int) => true,
            _ => false,
        }
    }

    pub(super) fn is_text(&self) -> bool {
        matches!(self, Self::Text | Self::Word(_) | Self::Any)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Text => f.write_str("string"),
            Self::Word(vocabulary) => f.write_str(vocabulary.name),
            Self::List(item) => write!(f, "list of {item}"),
            Self::Map(value) => write!(f, "map of {value}"),
            Self::Object(object) => f.write_str(&object.name),
            Self::Any => f.write_str("anything"),
        }
    }
}
