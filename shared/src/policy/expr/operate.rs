//! What operators, functions and macros do with their values.

use super::eval::{EvalError, Run, fail};
use super::node::{Arithmetic, Comparison, Each, Node};
use super::value::Value;
use crate::digest::Digest;

impl Run<'_> {
    fn equal(&mut self, node: &Node, a: &Value, b: &Value) -> Result<bool, EvalError> {
        self.spend(node, 1)?;
        match (a, b) {
            (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
            (Value::Int(a), Value::Int(b)) => Ok(a == b),
            (Value::Text(a), Value::Text(b)) => {
                self.spend(node, a.len().min(b.len()) as u64 / 64)?;
                Ok(a == b)
            }
            (Value::List(a), Value::List(b)) if a.len() != b.len() => Ok(false),
            (Value::List(a), Value::List(b)) => {
                for (a, b) in a.iter().zip(b.iter()) {
                    if !self.equal(node, a, b)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => fail(node, format!("a {} can't be compared with a {}", a.sort(), b.sort())),
        }
    }

    pub(super) fn compare(
        &mut self,
        node: &Node,
        comparison: Comparison,
        a: &Node,
        b: &Node,
    ) -> Result<bool, EvalError> {
        let (a, b) = (self.value(a)?, self.value(b)?);
        let ordering = match comparison {
            Comparison::Equal => return self.equal(node, &a, &b),
            Comparison::NotEqual => return self.equal(node, &a, &b).map(|equal| !equal),
            _ => match (&a, &b) {
                (Value::Int(a), Value::Int(b)) => a.cmp(b),
                (Value::Text(a), Value::Text(b)) => a.cmp(b),
                _ => return fail(node, format!("a {} and a {} have no order", a.sort(), b.sort())),
            },
        };
        Ok(match comparison {
            Comparison::Less => ordering.is_lt(),
            Comparison::LessOrEqual => ordering.is_le(),
            Comparison::Greater => ordering.is_gt(),
            _ => ordering.is_ge(),
        })
    }

    pub(super) fn arithmetic(
        &mut self,
        node: &Node,
        operator: Arithmetic,
        a: &Node,
        b: &Node,
    ) -> Result<Value, EvalError> {
        let (a, b) = (self.value(a)?, self.value(b)?);
        if let (Arithmetic::Add, Value::Text(a), Value::Text(b)) = (operator, &a, &b) {
            self.spend(node, (a.len() + b.len()) as u64 / 64)?;
            return Ok(Value::Text([&**a, &**b].concat().into()));
        }
        let (Value::Int(a), Value::Int(b)) = (&a, &b) else {
            return fail(node, format!("a {} and a {} can't be calculated with", a.sort(), b.sort()));
        };
        let result = match operator {
            Arithmetic::Add => a.checked_add(*b),
            Arithmetic::Subtract => a.checked_sub(*b),
            Arithmetic::Multiply => a.checked_mul(*b),
            Arithmetic::Divide => a.checked_div(*b),
            Arithmetic::Remainder => a.checked_rem(*b),
        };
        match result {
            Some(value) => Ok(Value::Int(value)),
            None if *b == 0 => fail(node, "division by zero"),
            None => fail(node, "the number overflows"),
        }
    }

    pub(super) fn contains(&mut self, item: &Node, of: &Node) -> Result<bool, EvalError> {
        let (item, object) = (self.value(item)?, self.value(of)?);
        match &object {
            Value::List(items) => {
                for candidate in items.iter() {
                    if self.equal(of, &item, candidate)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Value::Map(map) => match &item {
                Value::Text(key) => Ok(map.contains_key(&**key)),
                other => fail(of, format!("a {} is no key", other.sort())),
            },
            other => fail(of, format!("nothing is `in` a {}", other.sort())),
        }
    }

    pub(super) fn size(&mut self, of: &Node) -> Result<i64, EvalError> {
        let size = match self.value(of)? {
            Value::Text(text) => {
                self.spend(of, text.len() as u64 / 64)?;
                text.chars().count()
            }
            Value::List(items) => items.len(),
            Value::Map(map) => map.len(),
            other => return fail(of, format!("a {} has no size", other.sort())),
        };
        Ok(i64::try_from(size).unwrap_or(i64::MAX))
    }

    /// Draws from the checkpoint's hash: the same checkpoint always gives the same answer.
    pub(super) fn sample(&mut self, percent: &Node) -> Result<bool, EvalError> {
        let share = self.int(percent)?;
        if !(0..=100).contains(&share) {
            return fail(percent, format!("{share} is no percentage"));
        }
        if self.world.checkpoint_hash().is_empty() {
            return fail(percent, "there is no checkpoint to sample");
        }
        let digest = Digest::of(format!("checkrein.sample:{}", self.world.checkpoint_hash()));
        let drawn = digest.as_bytes()[..8].iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        Ok(drawn % 100 < share.unsigned_abs())
    }

    pub(super) fn each(&mut self, node: &Node, each: Each, list: &Node, body: &Node) -> Result<Value, EvalError> {
        let items = match self.value(list)? {
            Value::List(items) => items,
            // As in CEL, a mapping stands for its keys.
            Value::Map(map) => map.keys().map(|key| Value::text(key)).collect(),
            other => return fail(list, format!("a {} has no items", other.sort())),
        };
        let mut kept = Vec::new();
        let mut hits = 0usize;
        for item in items.iter() {
            self.spend(node, 1)?;
            self.bound.push(item.clone());
            let result = self.value(body);
            self.bound.pop();
            match (each, result?) {
                (Each::Map, value) => kept.push(value),
                (Each::Exists, Value::Bool(true)) => return Ok(Value::Bool(true)),
                (Each::All, Value::Bool(false)) => return Ok(Value::Bool(false)),
                (Each::ExistsOne, Value::Bool(true)) => hits += 1,
                (Each::Filter, Value::Bool(true)) => kept.push(item.clone()),
                (_, Value::Bool(_)) => {}
                (_, other) => return fail(body, format!("expected a bool, found a {}", other.sort())),
            }
        }
        Ok(match each {
            Each::Exists => Value::Bool(false),
            Each::All => Value::Bool(true),
            Each::ExistsOne => Value::Bool(hits == 1),
            Each::Filter | Each::Map => Value::List(kept.into()),
        })
    }
}
