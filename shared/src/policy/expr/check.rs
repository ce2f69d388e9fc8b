//! Turns a parsed expression into a checked one, or says what is wrong with it.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, SelectExpr, SourceInfo};

use super::ExprError;
use super::node::{Node, Op};
use super::schema::Schema;
use super::types::{Object, Type};
use super::value::Value;
use crate::policy::nearest;

/// The deepest nesting of an expression.
const DEPTH_MAX: usize = 32;

/// The deepest nesting of macros: the cost grows with the lists' sizes multiplied.
pub(super) const MACROS_MAX: usize = 2;

pub(super) fn compile(source: &str, schema: &Schema) -> Result<Node, ExprError> {
    let (parsed, info) = parse(source)?;
    let mut checker = Checker { schema, info, bound: Vec::new(), depth: 0 };
    let (node, result) = checker.check(&parsed)?;
    match result {
        Type::Bool => Ok(node),
        other => {
            let error = ExprError::new(node.at, format!("the condition must be a bool; this is {}", article(&other)));
            Err(error.hinted("compare it with something, such as `== ..` or `> 0`".to_owned()))
        }
    }
}

/// Parses without expanding macros, so that the tree is what the author wrote.
fn parse(source: &str) -> Result<(IdedExpr, SourceInfo), ExprError> {
    if source.trim().is_empty() {
        return Err(ExprError::new(0, "the condition is empty").hinted("write `true` for always".to_owned()));
    }
    let limit = u16::try_from(DEPTH_MAX).expect("a small constant");
    let parser = cel::Env::default().with_optional_support(false).parser().max_recursion_depth(limit);
    parser.parse_with_source_info(source).map_err(|errors| {
        let Some(error) = errors.errors.first() else { return ExprError::new(0, "not a CEL expression") };
        if error.msg.contains("Recursion limit") {
            return ExprError::new(0, format!("nested deeper than {DEPTH_MAX} levels"));
        }
        ExprError::new(byte_at(source, error.pos), format!("not a CEL expression: {}", syntax(&error.msg)))
    })
}

/// The parser's message without the list of everything that it would have taken.
fn syntax(message: &str) -> &str {
    let text = message.strip_prefix("Syntax error: ").unwrap_or(message);
    let text = text.split(" expecting ").next().unwrap_or(text);
    if text.contains("'<EOF>'") { "it ends too early" } else { text }
}

/// The byte that the parser's line and column (in characters, both from 1) mean.
fn byte_at(source: &str, (line, column): (isize, isize)) -> usize {
    let line = usize::try_from(line).unwrap_or(1).max(1) - 1;
    let column = usize::try_from(column).unwrap_or(1).max(1) - 1;
    let start: usize = source.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = source.get(start..).unwrap_or_default();
    start + rest.char_indices().nth(column).map_or(rest.len(), |(byte, _)| byte)
}

pub(super) fn article(of: &Type) -> String {
    match of {
        Type::Bool | Type::Text | Type::List(_) | Type::Map(_) => format!("a {of}"),
        Type::Int => format!("an {of}"),
        Type::Word(_) | Type::Object(_) | Type::Any => of.to_string(),
    }
}

/// A checked node and its type.
pub(super) type Typed = (Node, Type);

pub(super) struct Checker<'a> {
    schema: &'a Schema,
    info: SourceInfo,
    /// Variables of the macros around the current node.
    pub(super) bound: Vec<(String, Type)>,
    depth: usize,
}

impl Checker<'_> {
    pub(super) fn at(&self, expr: &IdedExpr) -> usize {
        self.info.offset_for(expr.id).map_or(0, |(start, _)| start as usize)
    }

    pub(super) fn check(&mut self, expr: &IdedExpr) -> Result<Typed, ExprError> {
        let at = self.at(expr);
        if self.depth == DEPTH_MAX {
            return Err(ExprError::new(at, format!("nested deeper than {DEPTH_MAX} levels")));
        }
        self.depth += 1;
        let result = match &expr.expr {
            Expr::Literal(literal) => Self::literal(at, literal),
            Expr::Ident(name) => self.name(at, name),
            Expr::Select(select) => self.select(at, select),
            Expr::List(list) => self.list(at, &list.elements),
            Expr::Call(call) => self.call(at, call),
            Expr::Map(_) => Err(ExprError::new(at, "mappings can't be written in expressions")),
            Expr::Struct(of) => Err(ExprError::new(at, format!("`{}` can't be made in expressions", of.type_name))),
            Expr::Comprehension(_) | Expr::Unspecified => Err(ExprError::new(at, "this can't stand here")),
        };
        self.depth -= 1;
        result
    }

    fn literal(at: usize, literal: &LiteralValue) -> Result<Typed, ExprError> {
        let (value, of) = match literal {
            LiteralValue::Boolean(value) => (Value::Bool(*value.inner()), Type::Bool),
            LiteralValue::Int(value) => (Value::Int(*value.inner()), Type::Int),
            LiteralValue::String(value) => (Value::text(value.inner()), Type::Text),
            LiteralValue::UInt(value) => {
                let error = ExprError::new(at, "unsigned numbers are not used here");
                return Err(error.hinted(format!("write `{}`", value.inner())));
            }
            LiteralValue::Double(_) => {
                let error = ExprError::new(at, "fractions are not used here");
                return Err(error.hinted("all numbers are whole; shares are in per cent".to_owned()));
            }
            LiteralValue::Bytes(_) => return Err(ExprError::new(at, "byte strings are not used here")),
            LiteralValue::Null => {
                let error = ExprError::new(at, "nothing is ever null here");
                return Err(error.hinted("ask `has(..)` whether something is there".to_owned()));
            }
        };
        Ok((Node::new(at, Op::Const(value)), of))
    }

    fn name(&self, at: usize, name: &str) -> Result<Typed, ExprError> {
        if let Some(slot) = self.bound.iter().rposition(|(bound, _)| bound == name) {
            return Ok((Node::new(at, Op::Variable(slot)), self.bound[slot].1.clone()));
        }
        if let Some(of) = self.schema.roots.get(name) {
            return Ok((Node::new(at, Op::Fact(name.to_owned())), of.clone()));
        }
        let error = ExprError::new(at, format!("unknown name `{name}`"));
        let names = self.schema.roots.keys().map(String::as_str);
        let hint = match self.schema.elsewhere(name) {
            Some(scope) => {
                let here = self.schema.scope.name();
                Some(format!("`{name}` is seen by {}, not by {here}", scope.name()))
            }
            None => nearest::hint(name, names.chain(self.bound.iter().map(|(bound, _)| bound.as_str()))),
        };
        Err(error.hinted(hint))
    }

    fn select(&mut self, at: usize, select: &SelectExpr) -> Result<Typed, ExprError> {
        let (of, kind) = self.check(&select.operand)?;
        let field = Self::field(at, &kind, &select.field)?;
        Ok((Node::new(at, Op::Select(of.boxed(), select.field.clone())), field))
    }

    /// The type of a field.
    pub(super) fn field(at: usize, of: &Type, field: &str) -> Result<Type, ExprError> {
        match of {
            Type::Any => Ok(Type::Any),
            Type::Map(value) => Ok((**value).clone()),
            Type::Object(object) => Self::known(at, object, field),
            Type::List(_) => {
                let error = ExprError::new(at, format!("{} has no field `{field}`", article(of)));
                Err(error.hinted("ask its items: `.exists(x, ..)` or `.all(x, ..)`".to_owned()))
            }
            _ => Err(ExprError::new(at, format!("{} has no field `{field}`", article(of)))),
        }
    }

    pub(super) fn known(at: usize, object: &Object, field: &str) -> Result<Type, ExprError> {
        object.fields.get(field).cloned().ok_or_else(|| {
            let hint = nearest::hint(field, object.fields.keys().map(String::as_str));
            let hint = hint.or_else(|| object.fields.is_empty().then(|| "the policy defines none".to_owned()));
            ExprError::new(at, format!("`{}` has no field `{field}`", object.name)).hinted(hint)
        })
    }

    fn list(&mut self, at: usize, items: &[IdedExpr]) -> Result<Typed, ExprError> {
        let mut nodes = Vec::with_capacity(items.len());
        let mut kind: Option<Type> = None;
        for item in items {
            let (node, of) = self.check(item)?;
            match &kind {
                Some(first) if !first.comparable(&of) => {
                    let message = format!("the list mixes {} and {}", article(first), article(&of));
                    return Err(ExprError::new(node.at, message));
                }
                _ => kind = Some(of),
            }
            nodes.push(node);
        }
        Ok((Node::new(at, Op::List(nodes)), Type::list(kind.unwrap_or(Type::Any))))
    }

    fn call(&mut self, at: usize, call: &CallExpr) -> Result<Typed, ExprError> {
        match &call.target {
            Some(target) => self.method(at, &call.func_name, target, &call.args),
            None => match self.operator(at, &call.func_name, &call.args) {
                Some(result) => result,
                None => self.function(at, &call.func_name, &call.args),
            },
        }
    }

    /// Whether a variable of this name would hide something.
    pub(super) fn shadows(&self, name: &str) -> bool {
        name.starts_with('.')
            || self.schema.roots.contains_key(name)
            || self.bound.iter().any(|(bound, _)| bound == name)
    }

    pub(super) fn expect(&mut self, expr: &IdedExpr, wanted: &Type, whose: &str) -> Result<Node, ExprError> {
        let (node, of) = self.check(expr)?;
        if of == Type::Any || of.comparable(wanted) {
            return Ok(node);
        }
        Err(ExprError::new(node.at, format!("{whose} needs {}; this is {}", article(wanted), article(&of))))
    }
}
