//! Runs the examples that a policy carries under `tests:`.

use super::compile::CompiledPolicy;
use super::evaluate::{Outcome, evaluate_rules};
use super::resolved::{Origin, PolicyTest};

/// How an example came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestResult {
    /// What it shows.
    pub name: String,
    /// Where it stands.
    pub origin: Origin,
    /// What the policy decided.
    pub outcome: Outcome,
    /// What differs from what was expected; `None`: it passed.
    pub failure: Option<String>,
}

impl TestResult {
    /// Whether the policy decided as expected.
    pub fn passed(&self) -> bool {
        self.failure.is_none()
    }
}

/// Runs every example of the policy.
pub fn run_policy_tests(policy: &CompiledPolicy) -> Vec<TestResult> {
    policy.policy().tests.iter().map(|test| run(policy, test)).collect()
}

fn run(policy: &CompiledPolicy, test: &PolicyTest) -> TestResult {
    let outcome = evaluate_rules(policy, test.on, &test.facts, &test.fired);
    let (rule, action) = (&test.expect.rule, test.expect.action);
    let as_expected = outcome.rule == *rule && outcome.action == action;
    let failure = (!as_expected).then(|| {
        let why = if outcome.message.is_empty() { String::new() } else { format!(": {}", outcome.message) };
        let known =
            policy.policy().rule(rule).is_some() || [super::NO_MATCH, super::EXPRESSION_ERROR].contains(&&**rule);
        let unknown = if known { "" } else { ", and there is no rule of that name" };
        format!("expected `{rule}` to {action}, but `{}` decided to {}{why}{unknown}", outcome.rule, outcome.action)
    });
    TestResult { name: test.name.clone(), origin: test.origin.clone(), outcome, failure }
}
