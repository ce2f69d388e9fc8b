//! Checks functions, methods and macros.

use cel::common::ast::{Expr, IdedExpr};
use globset::GlobMatcher;

use super::ExprError;
use super::check::{Checker, MACROS_MAX, Typed, article};
use super::node::{Each, Node, Op, TextTest};
use super::types::Type;
use super::value::Value;
use crate::policy::globs;
use crate::policy::nearest;

const FUNCTIONS: [&str; 4] = ["has", "size", "glob", "sample"];
const METHODS: [&str; 9] =
    ["exists", "exists_one", "all", "filter", "map", "size", "startsWith", "endsWith", "contains"];

impl Checker<'_> {
    pub(super) fn function(&mut self, at: usize, name: &str, args: &[IdedExpr]) -> Result<Typed, ExprError> {
        match (name, args) {
            ("has", [of]) => self.has(at, of),
            ("size", [of]) => self.size(at, of),
            ("glob", [path, pattern]) => {
                let path = self.expect(path, &Type::Text, "`glob`")?;
                let pattern = self.pattern(pattern)?;
                Ok((Node::new(at, Op::Glob(path.boxed(), pattern)), Type::Bool))
            }
            ("sample", [of, percent]) => self.sample(at, of, percent),
            _ if FUNCTIONS.contains(&name) => Err(wrong_arguments(at, name)),
            _ => {
                let hint = match nearest::nearest(name, METHODS) {
                    Some(method) => Some(format!("write `x.{method}(..)`")),
                    None => nearest::hint(name, FUNCTIONS),
                };
                Err(ExprError::new(at, format!("unknown function `{name}`")).hinted(hint))
            }
        }
    }

    pub(super) fn method(
        &mut self,
        at: usize,
        name: &str,
        target: &IdedExpr,
        args: &[IdedExpr],
    ) -> Result<Typed, ExprError> {
        if let Some(each) = each(name) {
            return match args {
                [variable, body] => self.each(at, each, target, variable, body),
                _ => Err(wrong_arguments(at, name)),
            };
        }
        match (name, args) {
            ("size", []) => self.size(at, target),
            ("startsWith", [part]) => self.text_test(at, TextTest::StartsWith, target, part),
            ("endsWith", [part]) => self.text_test(at, TextTest::EndsWith, target, part),
            ("contains", [part]) => self.text_test(at, TextTest::Contains, target, part),
            _ if METHODS.contains(&name) => Err(wrong_arguments(at, name)),
            _ => {
                let error = ExprError::new(at, format!("unknown method `{name}`"));
                Err(error.hinted(nearest::hint(name, METHODS)))
            }
        }
    }

    fn has(&mut self, at: usize, of: &IdedExpr) -> Result<Typed, ExprError> {
        let Expr::Select(select) = &of.expr else {
            let error = ExprError::new(self.at(of), "`has` asks for a field");
            return Err(error.hinted("write `has(a.b)`".to_owned()));
        };
        let (operand, kind) = self.check(&select.operand)?;
        Self::field(self.at(of), &kind, &select.field)?;
        Ok((Node::new(at, Op::Has(operand.boxed(), select.field.clone())), Type::Bool))
    }

    fn size(&mut self, at: usize, of: &IdedExpr) -> Result<Typed, ExprError> {
        let (node, kind) = self.check(of)?;
        match kind {
            Type::Text | Type::Word(_) | Type::List(_) | Type::Map(_) | Type::Any => {
                Ok((Node::new(at, Op::Size(node.boxed())), Type::Int))
            }
            Type::Object(object) if object.partial => Ok((Node::new(at, Op::Size(node.boxed())), Type::Int)),
            other => Err(ExprError::new(node.at, format!("{} has no size", article(&other)))),
        }
    }

    fn text_test(&mut self, at: usize, test: TextTest, text: &IdedExpr, part: &IdedExpr) -> Result<Typed, ExprError> {
        let (node, kind) = self.check(text)?;
        if !kind.is_text() {
            let error = ExprError::new(at, format!("only a string can be asked this; this is {}", article(&kind)));
            let is_list = matches!(kind, Type::List(_));
            return Err(error.hinted(is_list.then(|| "write `item in list`".to_owned())));
        }
        let part = self.expect(part, &Type::Text, "the argument")?;
        Ok((Node::new(at, Op::TextTest(test, node.boxed(), part.boxed())), Type::Bool))
    }

    /// A glob, which must be written out so that it is checked and compiled once.
    fn pattern(&mut self, of: &IdedExpr) -> Result<GlobMatcher, ExprError> {
        let node = self.expect(of, &Type::Text, "`glob`")?;
        let Op::Const(Value::Text(text)) = &node.op else {
            return Err(ExprError::new(node.at, "the pattern must be written out as a text"));
        };
        globs::path(text).map_err(|error| ExprError::new(node.at, error))
    }

    fn sample(&mut self, at: usize, of: &IdedExpr, percent: &IdedExpr) -> Result<Typed, ExprError> {
        let (drawn_from, _) = self.check(of)?;
        if !matches!(&drawn_from.op, Op::Fact(name) if name == "checkpoint") {
            let error = ExprError::new(drawn_from.at, "`sample` draws from the checkpoint");
            return Err(error.hinted("write `sample(checkpoint, 10)`".to_owned()));
        }
        let percent = self.expect(percent, &Type::Int, "`sample`")?;
        if let Op::Const(Value::Int(share)) = percent.op
            && !(0..=100).contains(&share)
        {
            return Err(ExprError::new(percent.at, format!("{share} is no percentage")));
        }
        Ok((Node::new(at, Op::Sample(percent.boxed())), Type::Bool))
    }

    fn each(
        &mut self,
        at: usize,
        each: Each,
        target: &IdedExpr,
        variable: &IdedExpr,
        body: &IdedExpr,
    ) -> Result<Typed, ExprError> {
        let (list, kind) = self.check(target)?;
        let item = match kind {
            Type::List(item) => *item,
            Type::Map(_) => Type::Text,
            Type::Object(object) if object.partial => Type::Text,
            Type::Any => Type::Any,
            other => return Err(ExprError::new(at, format!("{} has no items", article(&other)))),
        };
        let Expr::Ident(name) = &variable.expr else {
            return Err(ExprError::new(self.at(variable), "the first argument names a variable"));
        };
        if self.shadows(name) {
            let message = format!("`{name}` is taken; choose another variable");
            return Err(ExprError::new(self.at(variable), message));
        }
        if self.bound.len() == MACROS_MAX {
            let message = format!("macros are nested deeper than {MACROS_MAX} levels");
            return Err(ExprError::new(at, message));
        }
        self.bound.push((name.clone(), item.clone()));
        let body = if each == Each::Map {
            self.check(body)
        } else {
            self.expect(body, &Type::Bool, "the condition").map(|node| (node, Type::Bool))
        };
        self.bound.pop();
        let (body, result) = body?;
        let of = match each {
            Each::Map => Type::list(result),
            Each::Filter => Type::list(item),
            Each::Exists | Each::ExistsOne | Each::All => Type::Bool,
        };
        Ok((Node::new(at, Op::Each(each, list.boxed(), body.boxed())), of))
    }
}

fn wrong_arguments(at: usize, name: &str) -> ExprError {
    let usage = match name {
        "has" => "has(a.b)",
        "size" => "size(x)",
        "glob" => "glob(path, 'docs/**')",
        "sample" => "sample(checkpoint, 10)",
        "startsWith" | "endsWith" | "contains" => "text.contains('part')",
        "map" => "list.map(x, x.name)",
        _ => "list.exists(x, x.name == '..')",
    };
    ExprError::new(at, format!("`{name}` has the wrong arguments")).hinted(format!("write `{usage}`"))
}

fn each(name: &str) -> Option<Each> {
    Some(match name {
        "exists" => Each::Exists,
        "exists_one" => Each::ExistsOne,
        "all" => Each::All,
        "filter" => Each::Filter,
        "map" => Each::Map,
        _ => return None,
    })
}
