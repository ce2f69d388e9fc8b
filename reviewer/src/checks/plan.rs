//! Is the remaining plan still valid?

use std::collections::BTreeSet;

use checkrein_shared::records::{Plan, Severity};

use crate::check::{Check, Raised, field};
use crate::quote;
use crate::subject::Subject;

/// The plan is the one that the checkpoint names, progress fits it, and what remains can be carried out.
pub(super) fn plan(subject: &Subject) -> Vec<Raised> {
    let progress = &subject.checkpoint.plan;
    let Some(plan) = subject.plan.as_ref() else {
        let claim = format!(
            "the plan with hash {} (version {}) could not be found, so nobody can tell what it asks for",
            progress.hash.short(),
            progress.version
        );
        return vec![
            Raised::new(Check::Plan, Severity::High, claim, vec![field("plan/hash")])
                .act("Go back to the plan in force, or have it amended by a person."),
        ];
    };
    faults(subject, plan)
        .into_iter()
        .map(|(place, claim)| {
            Raised::new(Check::Plan, Severity::High, claim.clone(), vec![field(place)])
                .act(format!("Mend the plan or its progress: {claim}."))
        })
        .collect()
}

fn faults(subject: &Subject, plan: &Plan) -> Vec<(String, String)> {
    let progress = &subject.checkpoint.plan;
    let mut found = Vec::new();
    if let Err(error) = plan.check() {
        found.push(("plan".to_owned(), error.to_string()));
    }
    let completed: BTreeSet<_> = progress.completed_step_ids.iter().collect();
    for (index, id) in progress.completed_step_ids.iter().enumerate() {
        let place = format!("plan/completed_step_ids/{index}");
        match plan.step(id) {
            None => found.push((place, format!("step `{id}` is completed, but the plan has no such step"))),
            Some(step) => {
                let open: Vec<_> = step.needs.iter().filter(|n| !completed.contains(n)).collect();
                if !open.is_empty() {
                    let claim = format!("step `{id}` is completed before what it needs: {}", quote::list(open));
                    found.push((place, claim));
                }
            }
        }
    }
    for (index, id) in progress.pending_step_ids.iter().enumerate() {
        let place = format!("plan/pending_step_ids/{index}");
        if plan.step(id).is_none() {
            found.push((place, format!("step `{id}` is pending, but the plan has no such step")));
        } else if completed.contains(id) {
            found.push((place, format!("step `{id}` is both completed and pending")));
        }
    }
    found.extend(forgotten(subject, plan));
    found.extend(unknown_verifiers(subject, plan));
    found
}

/// Steps that are nowhere: an agent that drops work from its list has not done it.
fn forgotten(subject: &Subject, plan: &Plan) -> Option<(String, String)> {
    let progress = &subject.checkpoint.plan;
    let known: BTreeSet<_> =
        progress.completed_step_ids.iter().chain(&progress.pending_step_ids).chain(&progress.current_step_id).collect();
    let lost: Vec<_> = plan.steps.iter().map(|s| &s.id).filter(|id| !known.contains(id)).collect();
    let claim = format!("the plan's steps {} are neither completed nor pending", quote::list(&lost));
    (!lost.is_empty()).then(|| ("plan/pending_step_ids".to_owned(), claim))
}

fn unknown_verifiers(subject: &Subject, plan: &Plan) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for step in &plan.steps {
        let unknown: Vec<_> =
            step.verify.iter().filter(|name| !subject.settings.verifiers.contains_key(*name)).collect();
        if !unknown.is_empty() {
            let unknown = quote::list(unknown.iter().map(|n| quote::line(n)));
            let claim = format!("step `{}` wants verifiers that the policy does not have: {unknown}", step.id);
            found.push(("plan/hash".to_owned(), claim));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sample;

    fn two_steps() -> Sample {
        Sample::new().step("one", &[]).step("two", &["one"])
    }

    #[test]
    fn a_plan_that_is_on_its_way_passes() {
        assert_eq!(plan(&two_steps().completed("one").subject()), []);
        assert_eq!(plan(&two_steps().completed("one").completed("two").subject()), []);
    }

    #[test]
    fn progress_that_does_not_fit_the_plan_is_raised() {
        let early = two_steps().completed("two").subject();
        assert!(plan(&early)[0].claim.contains("before what it needs"));

        let mut stranger = two_steps().subject();
        stranger.checkpoint.plan.completed_step_ids.push("three".parse().unwrap());
        assert!(plan(&stranger)[0].claim.contains("no such step"));

        let mut both = two_steps().completed("one").subject();
        both.checkpoint.plan.pending_step_ids.push("one".parse().unwrap());
        assert!(plan(&both)[0].claim.contains("both completed and pending"));

        let mut dropped = two_steps().completed("one").subject();
        dropped.checkpoint.plan.pending_step_ids.clear();
        assert!(plan(&dropped)[0].claim.contains("neither completed nor pending"));
    }

    #[test]
    fn a_plan_that_can_not_be_found_or_verified_is_raised() {
        let mut lost = two_steps().subject();
        lost.plan = None;
        assert_eq!(plan(&lost)[0].refs, [field("plan/hash")]);

        let mut subject = two_steps().completed("one").subject();
        subject.plan.as_mut().unwrap().steps[0].verify.push("unit".into());
        assert!(plan(&subject)[0].claim.contains("`unit`"));
    }
}
