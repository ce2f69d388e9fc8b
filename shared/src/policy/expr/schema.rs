//! Which names an expression may use, and their types.
//!
//! It mirrors [`crate::policy::Facts`]; a test compares the two.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::types::{Object, Type, Vocabulary};

/// Where an expression stands; that decides what it sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A tool's `when`.
    Tool,
    /// A trigger's or a review's `when`.
    Checkpoint,
    /// A rule's `when`.
    Rule,
}

impl Scope {
    /// What to call it in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tool => "a tool's condition",
            Self::Checkpoint => "a condition of a trigger or review",
            Self::Rule => "a rule's condition",
        }
    }
}

/// The names that an expression sees.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    pub(super) scope: Scope,
    pub(super) roots: BTreeMap<String, Type>,
}

impl Schema {
    /// What `scope` sees where the policy defines these verifiers.
    pub(crate) fn new<'a>(scope: Scope, verifiers: impl IntoIterator<Item = &'a String>) -> Self {
        let mut roots = everywhere();
        match scope {
            Scope::Tool => roots.push(("call", call())),
            Scope::Checkpoint => roots.extend(checkpoint()),
            Scope::Rule => {
                roots.push(("call", call()));
                roots.extend(checkpoint());
                roots.extend(rule(verifiers));
            }
        }
        Self { scope, roots: roots.into_iter().map(|(name, root)| (name.to_owned(), root)).collect() }
    }

    /// Whether some other scope sees `name`.
    pub(super) fn elsewhere(&self, name: &str) -> Option<Scope> {
        [Scope::Tool, Scope::Checkpoint, Scope::Rule]
            .into_iter()
            .find(|scope| *scope != self.scope && Self::new(*scope, []).roots.contains_key(name))
    }
}

static RISK: Vocabulary = Vocabulary { name: "a risk", words: &["R0", "R1", "R2", "R3", "R4"], ordered: true };
static SEVERITY: Vocabulary =
    Vocabulary { name: "a severity", words: &["low", "medium", "high", "critical"], ordered: false };
static STATUS: Vocabulary =
    Vocabulary { name: "a finding's status", words: &["new", "open", "fixed", "regressed"], ordered: false };
static VERDICT: Vocabulary = Vocabulary {
    name: "a verdict",
    words: &["approved", "changes_required", "rejected", "inconclusive", ""],
    ordered: false,
};
static KIND: Vocabulary =
    Vocabulary { name: "a kind of review", words: &["rules", "model", "command", "human"], ordered: false };
static EFFECT: Vocabulary =
    Vocabulary { name: "an effect class", words: &["read_only", "effectful", "irreversible"], ordered: false };
static TRIGGER: Vocabulary = Vocabulary {
    name: "a trigger",
    words: &[
        "changeset.before_apply",
        "changeset.after_apply",
        "tool.before_high_risk",
        "approval.after",
        "compaction.before",
        "runtime.before_switch",
        "task.before_pause",
        "retry.exhausted",
        "human.before_takeover",
        "plan.subgraph_done",
        "plan.dependency_found",
        "plan.changed",
        "spec.changed",
        "test.regressed",
        "context.health_low",
        "budget.threshold",
    ],
    ordered: false,
};

type Roots = Vec<(&'static str, Type)>;

fn everywhere() -> Roots {
    vec![
        (
            "task",
            Type::object(
                "task",
                [("id", Type::Text), ("labels", Type::Map(Box::new(Type::Text))), ("objective", Type::Text)],
            ),
        ),
        ("step", Type::object("step", [("id", Type::Text), ("risk", Type::Word(&RISK))])),
        ("attempt", Type::object("attempt", [("n", Type::Int), ("failures", Type::Int), ("same_error", Type::Int)])),
        (
            "budget",
            Type::object("budget", [("turns_pct", Type::Int), ("cost_pct", Type::Int), ("wall_pct", Type::Int)]),
        ),
    ]
}

fn call() -> Type {
    Type::object(
        "call",
        [
            ("name", Type::Text),
            ("server", Type::Text),
            ("args", Type::Map(Box::new(Type::Any))),
            ("argv", Type::list(Type::Text)),
            ("cwd", Type::Text),
            ("effect", Type::Word(&EFFECT)),
            ("prior", Type::Int),
        ],
    )
}

fn checkpoint() -> Roots {
    vec![
        ("trigger", Type::Word(&TRIGGER)),
        ("checkpoint", Type::object("checkpoint", [("seq", Type::Int), ("open_issues", Type::Int)])),
        (
            "changeset",
            Type::object(
                "changeset",
                [
                    ("files", Type::Int),
                    ("lines", Type::Int),
                    ("paths", Type::list(Type::Text)),
                    ("touched_protected", Type::Bool),
                ],
            ),
        ),
        ("tests", Type::object("tests", [("regressed", Type::Int)])),
        ("context", Type::object("context", [("used_pct", Type::Int)])),
    ]
}

fn rule<'a>(verifiers: impl IntoIterator<Item = &'a String>) -> Roots {
    let review = [
        ("name", Type::Text),
        ("kind", Type::Word(&KIND)),
        ("verdict", Type::Word(&VERDICT)),
        ("risk", Type::Word(&RISK)),
        ("current", Type::Bool),
        ("findings", Type::Int),
    ];
    let finding = [
        ("id", Type::Text),
        ("severity", Type::Word(&SEVERITY)),
        ("status", Type::Word(&STATUS)),
        ("age_rounds", Type::Int),
    ];
    let round = [
        ("n", Type::Int),
        ("complete", Type::Bool),
        ("approvals", Type::Int),
        ("rejections", Type::Int),
        ("inconclusive", Type::Int),
        ("coverage_pct", Type::Int),
    ];
    let outcome =
        Type::object("a verifier's outcome", [("ok", Type::Bool), ("exit", Type::Int), ("flaky", Type::Bool)]);
    let fields = verifiers.into_iter().map(|name| (name.clone(), outcome.clone())).collect();
    let verifiers = Object { name: "verifiers".to_owned(), fields, partial: true, item: outcome };
    vec![
        ("round", Type::object("round", round)),
        ("reviews", Type::list(Type::object("a review", review))),
        ("open_findings", Type::list(Type::object("a finding", finding))),
        ("verifiers", Type::Object(Arc::new(verifiers))),
        ("drift", Type::object("drift", [("base", Type::Bool), ("plan", Type::Bool), ("spec", Type::Bool)])),
        ("human_changed", Type::Bool),
    ]
}
