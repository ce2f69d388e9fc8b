//! Reviews: who is asked about a checkpoint, and whether that is anybody.

use crate::policy::compile::CompiledPolicy;
use crate::policy::expr::World;
use crate::policy::facts::Facts;
use crate::policy::resolved::Review;
use crate::records::{ReviewKind, Trigger};

/// A review that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewRequirement {
    /// What the policy says about it.
    pub review: Review,
    /// How many approvals it needs.
    pub quorum: u32,
    /// The condition under which it is asked for failed, so it is.
    pub condition_failed: bool,
}

/// The reviews that a checkpoint of `trigger` needs. A condition that fails counts as true.
pub fn required_reviews(policy: &CompiledPolicy, trigger: Trigger, facts: &Facts) -> Vec<ReviewRequirement> {
    let facts = Facts { trigger: trigger.as_str().to_owned(), ..facts.clone() };
    let world = World::new(&facts);
    let mut required = Vec::new();
    let reviews = policy.policy().reviews.iter().zip(&policy.reviews);
    for (review, when) in reviews.filter(|(review, _)| review.on.contains(&trigger)) {
        let result = when.as_ref().map(|when| when.evaluate(&world, &mut Vec::new()));
        let condition_failed = matches!(result, Some(Err(_)));
        if !matches!(result, Some(Ok(false))) {
            let quorum = review.quorum.of(review.count);
            required.push(ReviewRequirement { review: review.clone(), quorum, condition_failed });
        }
    }
    required
}

/// What stands between work and its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateCover {
    /// How many blocking reviews there are.
    pub blocking: usize,
    /// How many of them are judgements: by a model, a program or a person.
    pub judging: usize,
    /// How many different verifiers the blocking `rules` reviews run.
    pub verifiers: usize,
}

impl GateCover {
    /// Whether a person must be asked because nothing else would really look: no blocking review at all, or only
    /// built-in checks without a single verifier.
    pub fn asks_person(self) -> bool {
        self.judging == 0 && self.verifiers == 0
    }
}

/// What the required reviews amount to; `step_verifiers` are verifiers that the task's steps name besides.
pub fn gate_cover(required: &[ReviewRequirement], step_verifiers: usize) -> GateCover {
    let blocking: Vec<&Review> = required.iter().map(|r| &r.review).filter(|review| review.blocking).collect();
    let mut verifiers: Vec<&String> = blocking.iter().flat_map(|review| &review.verifiers).collect();
    verifiers.sort();
    verifiers.dedup();
    let runs_verifiers = blocking.iter().any(|review| review.kind == ReviewKind::Rules);
    GateCover {
        blocking: blocking.len(),
        judging: blocking.iter().filter(|review| review.kind != ReviewKind::Rules).count(),
        verifiers: verifiers.len() + if runs_verifiers { step_verifiers } else { 0 },
    }
}
