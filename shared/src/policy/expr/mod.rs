//! Expressions: CEL that is checked when a file is loaded and evaluated
//! strictly.
//!
//! The `cel` crate parses; the checking and the evaluation are this module's.
//! CEL lets an error disappear behind `||`, calls a misspelt field absent and
//! takes any value for a result. Here every name and type is known before
//! anything runs, the result is a boolean, an error at run time is an error
//! (never false, never skipped), and the cost of an evaluation is bounded.
//! What an error leads to is the caller's business.

mod check;
mod eval;
mod functions;
mod node;
mod operate;
mod operators;
mod schema;
mod types;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use eval::EvalError;
pub use eval::Seen;
pub(crate) use schema::{Schema, Scope};
pub(crate) use value::World;

/// The longest expression, in bytes.
pub(crate) const SOURCE_BYTES_MAX: usize = 1024;

/// A checked expression.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    root: node::Node,
}

/// What is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExprError {
    /// The byte of the expression at which it is wrong.
    pub(crate) offset: usize,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl ExprError {
    fn new(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, message: message.into(), hint: None }
    }

    fn hinted(self, hint: impl Into<Option<String>>) -> Self {
        Self { hint: hint.into(), ..self }
    }
}

impl Expression {
    /// Parses and checks `source` against what `schema` lets it see.
    pub(crate) fn compile(source: &str, schema: &Schema) -> Result<Self, ExprError> {
        if source.len() > SOURCE_BYTES_MAX {
            let message = format!("the expression is longer than {SOURCE_BYTES_MAX} bytes");
            return Err(ExprError::new(0, message).hinted("split it into several rules".to_owned()));
        }
        check::compile(source, schema).map(|root| Self { root })
    }

    /// Evaluates it; `seen` receives every fact that was read, in order, once.
    pub(crate) fn evaluate(&self, world: &World, seen: &mut Vec<Seen>) -> Result<bool, EvalError> {
        eval::evaluate(&self.root, world, seen)
    }

    /// Whether it is the literal `true`.
    pub(crate) fn is_always_true(&self) -> bool {
        matches!(self.root.op, node::Op::Const(value::Value::Bool(true)))
    }

    /// Whether it is the literal `false`.
    pub(crate) fn is_always_false(&self) -> bool {
        matches!(self.root.op, node::Op::Const(value::Value::Bool(false)))
    }

    /// Whether it reads the fact `name`.
    pub(crate) fn reads(&self, name: &str) -> bool {
        self.root.reads(name)
    }
}
