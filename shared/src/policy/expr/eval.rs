//! Evaluates a checked expression: strictly, from left to right, within a
//! budget of steps.
//!
//! `&&`, `||` and `?:` do not evaluate what cannot matter; nothing else is
//! skipped, and an error ends the evaluation.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::node::{Node, Op, TextTest};
use super::value::{Value, World};

/// The most steps that one evaluation may take. A step is one operation, or 64 bytes of compared text.
const STEPS_MAX: u64 = 1_000_000;

/// The most different facts that are reported as seen.
const SEEN_MAX: usize = 32;

/// Why an evaluation failed, and the byte of the source at which.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct EvalError {
    pub(crate) offset: usize,
    pub(crate) message: String,
}

/// A fact that a condition read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// Its name, such as `round.coverage_pct`.
    pub name: String,
    /// Its value, in a short form for people.
    pub value: String,
}

pub(super) fn evaluate(root: &Node, world: &World, seen: &mut Vec<Seen>) -> Result<bool, EvalError> {
    let mut run = Run { world, seen, bound: Vec::new(), steps: 0 };
    run.bool(root)
}

/// An evaluation on its way.
pub(super) struct Run<'a> {
    pub(super) world: &'a World,
    seen: &'a mut Vec<Seen>,
    pub(super) bound: Vec<Value>,
    steps: u64,
}

pub(super) fn fail<T>(node: &Node, message: impl Into<String>) -> Result<T, EvalError> {
    Err(EvalError { offset: node.at, message: message.into() })
}

impl Run<'_> {
    pub(super) fn spend(&mut self, node: &Node, steps: u64) -> Result<(), EvalError> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > STEPS_MAX { fail(node, "the evaluation takes too many steps") } else { Ok(()) }
    }

    fn bool(&mut self, node: &Node) -> Result<bool, EvalError> {
        match self.value(node)? {
            Value::Bool(value) => Ok(value),
            other => fail(node, format!("expected a bool, found a {}", other.sort())),
        }
    }

    pub(super) fn int(&mut self, node: &Node) -> Result<i64, EvalError> {
        match self.value(node)? {
            Value::Int(value) => Ok(value),
            other => fail(node, format!("expected an int, found a {}", other.sort())),
        }
    }

    fn text(&mut self, node: &Node) -> Result<Arc<str>, EvalError> {
        match self.value(node)? {
            Value::Text(text) => {
                self.spend(node, text.len() as u64 / 64)?;
                Ok(text)
            }
            other => fail(node, format!("expected a string, found a {}", other.sort())),
        }
    }

    pub(super) fn value(&mut self, node: &Node) -> Result<Value, EvalError> {
        self.spend(node, 1)?;
        let value = match &node.op {
            Op::Const(value) => value.clone(),
            Op::List(items) => Value::List(items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?),
            Op::Variable(slot) => self.bound[*slot].clone(),
            Op::Fact(_) | Op::Select(..) => self.read(node)?,
            Op::Has(of, field) => Value::Bool(self.has(of, field)?),
            Op::Index(of, index) => self.index(node, of, index)?,
            Op::Not(of) => Value::Bool(!self.bool(of)?),
            Op::Negate(of) => match self.int(of)?.checked_neg() {
                Some(value) => Value::Int(value),
                None => return fail(node, "the number overflows"),
            },
            Op::And(a, b) => Value::Bool(self.bool(a)? && self.bool(b)?),
            Op::Or(a, b) => Value::Bool(self.bool(a)? || self.bool(b)?),
            Op::Choose(condition, yes, no) => {
                let chosen = if self.bool(condition)? { yes } else { no };
                self.value(chosen)?
            }
            Op::Compare(comparison, a, b) => Value::Bool(self.compare(node, *comparison, a, b)?),
            Op::Arithmetic(operator, a, b) => self.arithmetic(node, *operator, a, b)?,
            Op::In(item, of) => Value::Bool(self.contains(item, of)?),
            Op::Size(of) => Value::Int(self.size(of)?),
            Op::TextTest(test, text, part) => {
                let (text, part) = (self.text(text)?, self.text(part)?);
                Value::Bool(match test {
                    TextTest::StartsWith => text.starts_with(&*part),
                    TextTest::EndsWith => text.ends_with(&*part),
                    TextTest::Contains => text.contains(&*part),
                })
            }
            Op::Glob(path, pattern) => Value::Bool(pattern.is_match(&*self.text(path)?)),
            Op::Sample(percent) => Value::Bool(self.sample(percent)?),
            Op::Each(each, list, body) => self.each(node, *each, list, body)?,
        };
        Ok(value)
    }

    /// Reads a fact, or a field of something, and notes what a rule saw.
    fn read(&mut self, node: &Node) -> Result<Value, EvalError> {
        let value = match &node.op {
            Op::Fact(name) => match self.world.fact(name) {
                Some(Value::Opaque(_)) | None => return fail(node, format!("there is no `{name}` here")),
                Some(value) => value.clone(),
            },
            Op::Select(of, field) => {
                let object = if of.fact_name().is_some() { self.read_quietly(of)? } else { self.value(of)? };
                self.field(node, &object, field)?
            }
            _ => return self.value(node),
        };
        if let Some(name) = node.fact_name() {
            self.note(name, &value);
        }
        Ok(value)
    }

    /// Reads what a longer name passes through, without noting it.
    fn read_quietly(&mut self, node: &Node) -> Result<Value, EvalError> {
        let noted = self.seen.len();
        let value = self.read(node);
        self.seen.truncate(noted);
        value
    }

    fn note(&mut self, name: String, value: &Value) {
        if self.seen.len() < SEEN_MAX && !self.seen.iter().any(|seen| seen.name == name) {
            self.seen.push(Seen { name, value: value.to_string() });
        }
    }

    pub(super) fn field(&self, node: &Node, object: &Value, field: &str) -> Result<Value, EvalError> {
        match object {
            Value::Map(map) => match map.get(field) {
                Some(value) => Ok(value.clone()),
                None => fail(node, format!("there is no `{field}` here")),
            },
            other => fail(node, format!("a {} has no field `{field}`", other.sort())),
        }
    }

    fn has(&mut self, of: &Node, field: &str) -> Result<bool, EvalError> {
        match self.value(of)? {
            Value::Map(map) => Ok(map.contains_key(field)),
            other => fail(of, format!("a {} has no field `{field}`", other.sort())),
        }
    }

    fn index(&mut self, node: &Node, of: &Node, index: &Node) -> Result<Value, EvalError> {
        let (object, index) = (self.value(of)?, self.value(index)?);
        match (&object, &index) {
            (Value::List(items), Value::Int(position)) => {
                match usize::try_from(*position).ok().and_then(|position| items.get(position)) {
                    Some(item) => Ok(item.clone()),
                    None => fail(node, format!("the list has {} items and none at {position}", items.len())),
                }
            }
            (Value::Map(_), Value::Text(key)) => self.field(node, &object, key),
            _ => fail(node, format!("a {} can't be indexed with a {}", object.sort(), index.sort())),
        }
    }
}
