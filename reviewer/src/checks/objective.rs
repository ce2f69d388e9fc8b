//! Is the goal still the one that was set, with all its constraints?

use checkrein_shared::records::{Constraint, ConstraintRef, Severity};

use crate::check::{Check, Raised, field};
use crate::quote;
use crate::subject::Subject;

/// Objective, specification and constraints are those in force.
pub(super) fn objective(subject: &Subject) -> Vec<Raised> {
    let stated = &subject.checkpoint.objective;
    let mut raised = Vec::new();
    let mut fault = |place: &str, claim: String| {
        raised.push(
            Raised::new(Check::Objective, Severity::Critical, claim, vec![field(place)])
                .act("Go back to the objective, specification and constraints in force; only people amend them."),
        );
    };
    if stated.spec_hash != subject.spec.spec_hash() {
        fault("objective/spec_hash", "the checkpoint works towards another specification than the one in force".into());
    } else if stated.text != subject.spec.objective || stated.spec_ref != subject.spec.spec_ref() {
        fault("objective/text", "the checkpoint words the objective differently from the task".into());
    }
    let odd = constraint_differences(subject);
    if !odd.is_empty() {
        fault("constraints", format!("the checkpoint's constraints are not those in force: {}", odd.join("; ")));
    }
    raised
}

fn constraint_differences(subject: &Subject) -> Vec<String> {
    let reference = |c: &Constraint| ConstraintRef { id: c.id.clone(), version: c.version, hash: c.hash() };
    let own: Vec<ConstraintRef> = subject.spec.constraints.iter().map(reference).collect();
    // The policy's own are bound by its digest, so that a checkpoint may leave them out.
    let policy = &subject.settings.constraints;
    let stated = &subject.checkpoint.constraints;
    let missing = own.iter().filter(|c| !stated.contains(c)).map(|c| (c, "is missing, or another version or text"));
    let unknown = stated.iter().filter(|c| !own.contains(c) && !policy.contains(c)).map(|c| (c, "is not in force"));
    missing.chain(unknown).map(|(c, what)| format!("`{}` {what}", quote::line(&c.id))).collect()
}

#[cfg(test)]
mod tests {
    use checkrein_shared::digest::Digest;

    use super::*;
    use crate::testing::Sample;

    #[test]
    fn the_objective_in_force_passes_and_any_other_is_raised() {
        assert!(objective(&Sample::new().subject()).is_empty());

        let mut subject = Sample::new().subject();
        subject.spec.objective = "something else".into();
        assert_eq!(objective(&subject)[0].refs, [field("objective/spec_hash")]);

        let mut subject = Sample::new().subject();
        subject.checkpoint.objective.text = "reworded".into();
        assert_eq!(objective(&subject)[0].refs, [field("objective/text")]);
    }

    #[test]
    fn constraints_must_be_those_of_task_and_policy() {
        let rule = Constraint { id: "no-deps".into(), version: 2, text: "add no dependency".into() };
        let reference = ConstraintRef { id: rule.id.clone(), version: 2, hash: rule.hash() };
        let other = ConstraintRef { version: 1, ..reference.clone() };
        let policy = ConstraintRef { id: "sox".into(), version: 1, hash: Digest::of("sox") };

        let mut subject = Sample::new().subject();
        subject.spec.constraints = vec![rule];
        subject.settings.constraints = vec![policy.clone()];
        for (stated, fault) in [
            (vec![reference.clone(), policy.clone()], None),
            (vec![policy.clone(), reference.clone()], None),
            (vec![reference.clone()], None),
            (vec![policy.clone()], Some("`no-deps` is missing")),
            (vec![other, policy.clone()], Some("`no-deps` is missing, or another version")),
            (vec![reference, ConstraintRef { version: 2, ..policy }], Some("`sox` is not in force")),
        ] {
            subject.checkpoint.constraints = stated;
            let raised = objective(&subject);
            match fault {
                None => assert!(raised.is_empty(), "{raised:?}"),
                Some(part) => assert!(raised[0].claim.contains(part), "{raised:?}"),
            }
        }
    }
}
