//! A step that counts as completed left something that can be looked at.

use checkrein_shared::records::Severity;

use crate::check::{Check, Raised, field};
use crate::subject::Subject;

/// Evidence for every completed step.
pub(super) fn step_evidence(subject: &Subject) -> Vec<Raised> {
    let completed = subject.checkpoint.plan.completed_step_ids.iter().enumerate();
    let bare = completed.filter(|(_, step)| !subject.evidence.values().any(|e| e.step.as_ref() == Some(*step)));
    bare.map(|(index, step)| {
        let claim = format!("step `{step}` is said to be completed, and the evidence index names nothing of it");
        Raised::new(Check::StepEvidence, Severity::High, claim, vec![field(format!("plan/completed_step_ids/{index}"))])
            .act(format!("Run step `{step}` again so that its output is recorded."))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sample;

    #[test]
    fn a_completed_step_without_any_artifact_is_raised() {
        let sample = Sample::new().completed("fix").log("log:fix", "fix");
        assert!(step_evidence(&sample.subject()).is_empty());
        let raised = step_evidence(&sample.completed("ship").subject());
        assert_eq!(raised.len(), 1);
        assert!(raised[0].claim.contains("`ship`"));
        assert_eq!(raised[0].refs, [field("plan/completed_step_ids/1")]);
    }
}
