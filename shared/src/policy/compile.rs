//! A resolved policy made ready to decide: every expression compiled, every
//! reference checked.

use std::collections::BTreeMap;

use globset::GlobMatcher;

use super::check::{self, Fault};
use super::error::{PolicyError, Problem};
use super::expr::{ExprError, Expression, Schema, Scope};
use super::globs;
use super::load::Layer;
use super::merge;
use super::resolved::{Origin, ResolvedPolicy, When};
use crate::digest::Digest;
use crate::records::Trigger;

/// A policy that can decide.
#[derive(Debug, Clone)]
pub struct CompiledPolicy {
    policy: ResolvedPolicy,
    digest: Digest,
    /// One for each rule, in order.
    pub(super) rules: Vec<Expression>,
    /// One for each review, in order; `None`: always.
    pub(super) reviews: Vec<Option<Expression>>,
    pub(super) triggers: BTreeMap<Trigger, Expression>,
    /// One list for each layer, in order.
    pub(super) tools: Vec<Vec<CompiledTool>>,
    /// The paths that are protected. A pattern that is no glob is a fault that has been reported already.
    protect: Vec<GlobMatcher>,
}

/// What of a tool's entry has to be compiled.
#[derive(Debug, Clone)]
pub(super) struct CompiledTool {
    pub(super) matches: GlobMatcher,
    pub(super) when: Option<Expression>,
}

impl CompiledPolicy {
    /// Checks and compiles a resolved policy.
    pub(super) fn new(policy: ResolvedPolicy) -> Result<Self, PolicyError> {
        Self::compile_located(policy, &[])
    }

    /// As [`CompiledPolicy::new`]; problems get their exact place where the files are at hand.
    pub(super) fn compile_located(policy: ResolvedPolicy, layers: &[Layer]) -> Result<Self, PolicyError> {
        let mut problems: Vec<Problem> =
            check::check(&policy).iter().map(|fault| fault_problem(layers, fault)).collect();
        let schema = |scope| Schema::new(scope, policy.verifiers.keys());
        let mut compiler = Compiler {
            layers,
            rule: schema(Scope::Rule),
            checkpoint: schema(Scope::Checkpoint),
            tool: schema(Scope::Tool),
            problems: Vec::new(),
        };
        let rules = policy.rules.iter().filter_map(|rule| compiler.when(&rule.when, Scope::Rule)).collect();
        let reviews = policy
            .reviews
            .iter()
            .map(|review| review.when.as_ref().and_then(|when| compiler.when(when, Scope::Checkpoint)))
            .collect();
        let mut triggers = BTreeMap::new();
        for (trigger, rule) in &policy.triggers.by_name {
            if let Some(when) = rule.when.as_ref().and_then(|when| compiler.when(when, Scope::Checkpoint)) {
                triggers.insert(*trigger, when);
            }
        }
        let mut tools = Vec::new();
        for layer in &policy.tools {
            tools
                .push(layer.tools.iter().filter_map(|tool| compiler.tool(&tool.matches, tool.when.as_ref())).collect());
        }
        problems.append(&mut compiler.problems);
        if !problems.is_empty() {
            return Err(PolicyError::new(problems));
        }
        let digest = policy.digest();
        let protect = policy.workspace.protect.iter().filter_map(|pattern| globs::path(pattern).ok()).collect();
        Ok(Self { policy, digest, rules, reviews, triggers, tools, protect })
    }

    /// The policy.
    pub fn policy(&self) -> &ResolvedPolicy {
        &self.policy
    }

    /// Whether a path is one of those that the policy protects.
    pub fn protects(&self, path: &str) -> bool {
        self.protect.iter().any(|glob| glob.is_match(path))
    }

    /// Its digest.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

struct Compiler<'a> {
    layers: &'a [Layer],
    rule: Schema,
    checkpoint: Schema,
    tool: Schema,
    problems: Vec<Problem>,
}

impl Compiler<'_> {
    fn when(&mut self, when: &When, scope: Scope) -> Option<Expression> {
        let schema = match scope {
            Scope::Rule => &self.rule,
            Scope::Checkpoint => &self.checkpoint,
            Scope::Tool => &self.tool,
        };
        match Expression::compile(&when.source, schema) {
            Ok(expression) => Some(expression),
            Err(error) => {
                self.problems.push(expression_problem(self.layers, when, &error));
                None
            }
        }
    }

    fn tool(&mut self, matches: &str, when: Option<&When>) -> Option<CompiledTool> {
        let when = match when {
            Some(when) => Some(self.when(when, Scope::Tool)?),
            None => None,
        };
        // A glob that does not compile is a fault that has been reported already.
        globs::tool(matches).ok().map(|matches| CompiledTool { matches, when })
    }
}

fn fault_problem(layers: &[Layer], fault: &Fault) -> Problem {
    Problem { hint: fault.hint.clone(), ..merge::locate(layers, &fault.origin, &fault.message) }
}

fn expression_problem(layers: &[Layer], when: &When, error: &ExprError) -> Problem {
    let layer = layers.iter().find(|layer| layer.name == when.origin.file);
    let origin = layer.and_then(|layer| layer.locate(when, error.offset)).unwrap_or_else(|| within(when, error.offset));
    Problem { hint: error.hint.clone(), ..merge::locate(layers, &origin, &error.message) }
}

/// Where an offset stands as far as the expression alone tells.
fn within(when: &When, offset: usize) -> Origin {
    let before = when.source.get(..offset).unwrap_or(&when.source);
    let lines = before.matches('\n').count() as u64;
    let last = before.rsplit('\n').next().unwrap_or_default().chars().count() as u64;
    Origin { file: when.origin.file.clone(), line: when.origin.line + lines, column: when.origin.column + last }
}
