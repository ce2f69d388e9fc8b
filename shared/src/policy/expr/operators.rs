//! Checks operators: `&&`, `==`, `in`, `+` and their like.

use cel::common::ast::{IdedExpr, operators};

use super::ExprError;
use super::check::{Checker, Typed, article};
use super::node::{Arithmetic, Comparison, Node, Op};
use super::types::{Type, Vocabulary};
use super::value::Value;
use crate::policy::nearest;

impl Checker<'_> {
    /// Checks an operator; `None` where `name` is the name of a function.
    pub(super) fn operator(&mut self, at: usize, name: &str, args: &[IdedExpr]) -> Option<Result<Typed, ExprError>> {
        let result = match (name, args) {
            (operators::LOGICAL_AND | operators::LOGICAL_OR, [a, b]) => self.logic(at, name, a, b),
            (operators::LOGICAL_NOT, [a]) => {
                self.expect(a, &Type::Bool, "`!`").map(|a| (Node::new(at, Op::Not(a.boxed())), Type::Bool))
            }
            (operators::NEGATE, [a]) => {
                self.expect(a, &Type::Int, "`-`").map(|a| (Node::new(at, Op::Negate(a.boxed())), Type::Int))
            }
            (operators::CONDITIONAL, [condition, yes, no]) => self.choose(at, condition, yes, no),
            (operators::IN, [item, of]) => self.membership(at, item, of),
            (operators::INDEX, [of, index]) => self.index(at, of, index),
            (_, [a, b]) => match (comparison(name), arithmetic(name)) {
                (Some(comparison), _) => self.comparison(at, comparison, a, b),
                (_, Some(operator)) => self.arithmetic(at, operator, a, b),
                _ => return None,
            },
            _ => return None,
        };
        Some(result)
    }

    fn logic(&mut self, at: usize, name: &str, a: &IdedExpr, b: &IdedExpr) -> Result<Typed, ExprError> {
        let and = name == operators::LOGICAL_AND;
        let whose = if and { "`&&`" } else { "`||`" };
        let a = self.expect(a, &Type::Bool, whose)?.boxed();
        let b = self.expect(b, &Type::Bool, whose)?.boxed();
        Ok((Node::new(at, if and { Op::And(a, b) } else { Op::Or(a, b) }), Type::Bool))
    }

    fn choose(&mut self, at: usize, condition: &IdedExpr, yes: &IdedExpr, no: &IdedExpr) -> Result<Typed, ExprError> {
        let condition = self.expect(condition, &Type::Bool, "`?`")?;
        let (yes, a) = self.check(yes)?;
        let (no, b) = self.check(no)?;
        if !a.comparable(&b) {
            let message = format!("`? :` chooses between {} and {}", article(&a), article(&b));
            return Err(ExprError::new(at, message));
        }
        let of = if a == b {
            a
        } else if a.is_text() && b.is_text() && a != Type::Any {
            Type::Text
        } else {
            Type::Any
        };
        Ok((Node::new(at, Op::Choose(condition.boxed(), yes.boxed(), no.boxed())), of))
    }

    fn comparison(
        &mut self,
        at: usize,
        comparison: Comparison,
        a: &IdedExpr,
        b: &IdedExpr,
    ) -> Result<Typed, ExprError> {
        let (a, left) = self.check(a)?;
        let (b, right) = self.check(b)?;
        if !left.comparable(&right) {
            let message = format!("{} can't be compared with {}", article(&left), article(&right));
            return Err(ExprError::new(at, message));
        }
        check_word(&a, &right)?;
        check_word(&b, &left)?;
        if !matches!(comparison, Comparison::Equal | Comparison::NotEqual) {
            check_order(at, &left)?;
            check_order(at, &right)?;
        }
        Ok((Node::new(at, Op::Compare(comparison, a.boxed(), b.boxed())), Type::Bool))
    }

    fn arithmetic(&mut self, at: usize, operator: Arithmetic, a: &IdedExpr, b: &IdedExpr) -> Result<Typed, ExprError> {
        let (a, left) = self.check(a)?;
        let (b, right) = self.check(b)?;
        let of = match (operator, &left, &right) {
            (Arithmetic::Add, Type::Text | Type::Word(_), Type::Text | Type::Word(_)) => Type::Text,
            (Arithmetic::Add, Type::Any, Type::Any) => Type::Any,
            (_, Type::Int | Type::Any, Type::Int | Type::Any) => Type::Int,
            (Arithmetic::Add, Type::Text | Type::Word(_), Type::Any) => Type::Text,
            (Arithmetic::Add, Type::Any, Type::Text | Type::Word(_)) => Type::Text,
            _ => {
                let message = format!("{} and {} can't be calculated with", article(&left), article(&right));
                return Err(ExprError::new(at, message));
            }
        };
        Ok((Node::new(at, Op::Arithmetic(operator, a.boxed(), b.boxed())), of))
    }

    fn membership(&mut self, at: usize, item: &IdedExpr, of: &IdedExpr) -> Result<Typed, ExprError> {
        let (item, left) = self.check(item)?;
        let (of, right) = self.check(of)?;
        match &right {
            Type::List(inner) if left.comparable(inner) => {
                check_word(&item, inner)?;
                if let Op::List(words) = &of.op {
                    words.iter().try_for_each(|word| check_word(word, &left))?;
                }
            }
            Type::Map(_) if left.is_text() => {}
            Type::Object(object) if object.partial && left.is_text() => {
                if let Op::Const(Value::Text(name)) = &item.op {
                    Self::known(item.at, object, name)?;
                }
            }
            Type::Any => {}
            Type::List(inner) => {
                let message = format!("{} is never in a list of {inner}", article(&left));
                return Err(ExprError::new(at, message));
            }
            _ => return Err(ExprError::new(at, format!("nothing is `in` {}", article(&right)))),
        }
        Ok((Node::new(at, Op::In(item.boxed(), of.boxed())), Type::Bool))
    }

    fn index(&mut self, at: usize, of: &IdedExpr, index: &IdedExpr) -> Result<Typed, ExprError> {
        let (of, kind) = self.check(of)?;
        let (index, by) = self.check(index)?;
        let result = match (&kind, &by) {
            (Type::List(inner), Type::Int | Type::Any) => (**inner).clone(),
            (Type::Map(value), by) if by.is_text() => (**value).clone(),
            (Type::Object(object), by) if object.partial && by.is_text() => match &index.op {
                Op::Const(Value::Text(name)) => Self::known(index.at, object, name)?,
                // All that such an object holds is of one type.
                _ => object.item.clone(),
            },
            (Type::Any, Type::Int | Type::Text | Type::Word(_) | Type::Any) => Type::Any,
            _ => {
                let message = format!("{} can't be indexed with {}", article(&kind), article(&by));
                return Err(ExprError::new(at, message));
            }
        };
        Ok((Node::new(at, Op::Index(of.boxed(), index.boxed())), result))
    }
}

/// A literal that is compared with a word must be one of the vocabulary.
fn check_word(literal: &Node, other: &Type) -> Result<(), ExprError> {
    let (Op::Const(Value::Text(text)), Type::Word(vocabulary)) = (&literal.op, other) else { return Ok(()) };
    let Vocabulary { name, words, .. } = vocabulary;
    if words.contains(&&**text) {
        return Ok(());
    }
    let hint = nearest::hint(text, words.iter().copied().filter(|word| !word.is_empty()));
    Err(ExprError::new(literal.at, format!("'{text}' is never {name}")).hinted(hint))
}

fn check_order(at: usize, of: &Type) -> Result<(), ExprError> {
    match of {
        Type::Int | Type::Text | Type::Any => Ok(()),
        Type::Word(vocabulary) if vocabulary.ordered => Ok(()),
        Type::Word(vocabulary) => {
            let error = ExprError::new(at, format!("{} has no order", vocabulary.name));
            Err(error.hinted("list the words that you mean: `x in ['..', '..']`".to_owned()))
        }
        _ => Err(ExprError::new(at, format!("{} has no order", article(of)))),
    }
}

fn comparison(name: &str) -> Option<Comparison> {
    Some(match name {
        operators::EQUALS => Comparison::Equal,
        operators::NOT_EQUALS => Comparison::NotEqual,
        operators::LESS => Comparison::Less,
        operators::LESS_EQUALS => Comparison::LessOrEqual,
        operators::GREATER => Comparison::Greater,
        operators::GREATER_EQUALS => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

fn arithmetic(name: &str) -> Option<Arithmetic> {
    Some(match name {
        operators::ADD => Arithmetic::Add,
        operators::SUBSTRACT => Arithmetic::Subtract,
        operators::MULTIPLY => Arithmetic::Multiply,
        operators::DIVIDE => Arithmetic::Divide,
        operators::MODULO => Arithmetic::Remainder,
        _ => return None,
    })
}
