//! The built-in checks: each looks at a [`Subject`] and raises what it finds.
//!
//! A check is a pure function. It does not know how the policy switches it, and
//! it draws no conclusion: that is [`crate::judge`]'s part. Integrity and
//! currency are asked earlier, in the pipeline's own stages.

mod changeset;
mod claims;
mod invisible;
mod languages;
mod objective;
mod paths;
mod plan;
mod secrets;
mod steps;
mod verifying;
mod weakened;

use crate::check::{Check, Level, Raised};
use crate::subject::Subject;

type Run = fn(&Subject) -> Vec<Raised>;

const RUNS: &[(Check, Run)] = &[
    (Check::StepEvidence, steps::step_evidence),
    (Check::ClaimRefs, claims::claim_refs),
    (Check::ClaimContradicted, claims::claim_contradicted),
    (Check::ChangesetComplete, changeset::changeset_complete),
    (Check::Objective, objective::objective),
    (Check::Plan, plan::plan),
    (Check::Verifiers, verifying::verifiers),
    (Check::Regression, verifying::regression),
    (Check::WeakenedTests, weakened::weakened_tests),
    (Check::Secrets, secrets::secrets),
    (Check::Invisible, invisible::invisible),
    (Check::PolicyOrCi, paths::policy_or_ci),
    (Check::Size, changeset::size),
    (Check::Protected, paths::protected),
];

/// Runs every check that the policy has not switched off.
pub(crate) fn run_all(subject: &Subject) -> Vec<Raised> {
    RUNS.iter()
        .filter(|(check, _)| subject.settings.level(*check) != Level::Off)
        .flat_map(|(_, run)| run(subject))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_runs_here_or_in_a_stage_of_its_own() {
        let elsewhere = [Check::Integrity, Check::Currency];
        for check in Check::ALL {
            let here = RUNS.iter().filter(|(c, _)| c == check).count();
            assert_eq!(here, usize::from(!elsewhere.contains(check)), "{}", check.as_str());
        }
    }
}
