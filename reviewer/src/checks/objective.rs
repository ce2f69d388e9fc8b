//! Is the goal still the one that was set, with all its constraints?

use std::collections::BTreeMap;

use checkrein_shared::records::{ConstraintRef, Severity};

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
    let own = subject.spec.constraints.iter().map(|c| ConstraintRef {
        id: c.id.clone(),
        version: c.version,
        hash: c.hash(),
    });
    // Where task and policy name one constraint, the policy's counts: a task can't loosen it.
    let expected: BTreeMap<String, ConstraintRef> =
        own.chain(subject.settings.constraints.iter().cloned()).map(|c| (c.id.clone(), c)).collect();
    let stated: BTreeMap<&str, &ConstraintRef> =
        subject.checkpoint.constraints.iter().map(|c| (c.id.as_str(), c)).collect();
    let mut odd = Vec::new();
    for (id, wanted) in &expected {
        let id = quote::line(id);
        match stated.get(wanted.id.as_str()) {
            None => odd.push(format!("`{id}` is missing")),
            Some(found) if *found != wanted => odd.push(format!("`{id}` is another version or text")),
            Some(_) => {}
        }
    }
    let unknown = stated.keys().filter(|id| !expected.contains_key(**id));
    odd.extend(unknown.map(|id| format!("`{}` is not known", quote::line(id))));
    odd
}

#[cfg(test)]
mod tests {
    use checkrein_shared::digest::Digest;
    use checkrein_shared::records::Constraint;

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
            (vec![reference.clone()], Some("`sox` is missing")),
            (vec![other, policy.clone()], Some("`no-deps` is another version")),
            (vec![reference, policy, ConstraintRef { id: "mine".into(), version: 1, hash: Digest::of("") }], Some("`mine`")),
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
