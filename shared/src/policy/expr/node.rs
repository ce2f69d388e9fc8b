//! A checked expression as the evaluator walks it.

use globset::GlobMatcher;

use super::value::Value;

/// An operation and the byte of the source at which it stands.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) at: usize,
    pub(super) op: Op,
}

/// An operation. Variables of macros are numbered by how deep they are bound.
#[derive(Debug, Clone)]
pub(super) enum Op {
    Const(Value),
    List(Vec<Node>),
    /// A fact by its first name.
    Fact(String),
    Variable(usize),
    Select(Box<Node>, String),
    /// Whether a mapping has a key.
    Has(Box<Node>, String),
    Index(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Negate(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Choose(Box<Node>, Box<Node>, Box<Node>),
    Compare(Comparison, Box<Node>, Box<Node>),
    Arithmetic(Arithmetic, Box<Node>, Box<Node>),
    In(Box<Node>, Box<Node>),
    Size(Box<Node>),
    TextTest(TextTest, Box<Node>, Box<Node>),
    Glob(Box<Node>, GlobMatcher),
    Sample(Box<Node>),
    Each(Each, Box<Node>, Box<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextTest {
    StartsWith,
    EndsWith,
    Contains,
}

/// What a macro does with the items of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Each {
    Exists,
    ExistsOne,
    All,
    Filter,
    Map,
}

impl Node {
    pub(super) fn new(at: usize, op: Op) -> Self {
        Self { at, op }
    }

    pub(super) fn boxed(self) -> Box<Self> {
        Box::new(self)
    }

    /// The dotted name of a fact, where the node is nothing else.
    pub(super) fn fact_name(&self) -> Option<String> {
        match &self.op {
            Op::Fact(name) => Some(name.clone()),
            Op::Select(of, field) => of.fact_name().map(|name| format!("{name}.{field}")),
            _ => None,
        }
    }

    /// Whether the expression reads the fact whose first name is `name`.
    pub(super) fn reads(&self, name: &str) -> bool {
        match &self.op {
            Op::Fact(fact) => fact == name,
            Op::Const(_) | Op::Variable(_) => false,
            Op::List(items) => items.iter().any(|item| item.reads(name)),
            Op::Select(a, _) | Op::Has(a, _) | Op::Not(a) | Op::Negate(a) | Op::Size(a) | Op::Glob(a, _) => {
                a.reads(name)
            }
            Op::Sample(a) => name == "checkpoint" || a.reads(name),
            Op::Index(a, b)
            | Op::And(a, b)
            | Op::Or(a, b)
            | Op::Compare(_, a, b)
            | Op::Arithmetic(_, a, b)
            | Op::In(a, b)
            | Op::TextTest(_, a, b)
            | Op::Each(_, a, b) => a.reads(name) || b.reads(name),
            Op::Choose(a, b, c) => a.reads(name) || b.reads(name) || c.reads(name),
        }
    }
}
