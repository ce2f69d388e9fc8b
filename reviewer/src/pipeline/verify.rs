//! Seventh stage: the verifiers, each run by this reviewer itself.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use checkrein_shared::records::{EvidenceIndex, ReviewRequest, WorkspaceSpec};

use super::Context;
use super::fetch::Fetched;
use crate::check::{Check, Level};
use crate::error::{Error, Stop};
use crate::quote;
use crate::subject::Subject;
use crate::verifiers::{Job, Maker, Trees, Trouble, run_verifier};

/// What is known after the verifiers ran.
pub(super) struct Verified {
    pub(super) fetched: Fetched,
    /// What this reviewer made itself.
    pub(super) evidence: EvidenceIndex,
}

/// Runs every verifier that counts here, one after the other.
pub(super) async fn run(
    context: &Context<'_>,
    request: &ReviewRequest,
    mut fetched: Fetched,
) -> Result<Verified, Stop> {
    let mut evidence = EvidenceIndex::default();
    if fetched.subject.settings.level(Check::Verifiers) == Level::Off {
        return Ok(Verified { fetched, evidence });
    }
    let maker = Maker { instance: context.instance.clone(), review: request.review_id.clone(), now: context.now };
    let WorkspaceSpec::Directory(target) = &fetched.subject.spec.workspace;
    let target = Some(PathBuf::from(target)).filter(|target| target.is_dir());
    let mut left_ms = u64::try_from(request.deadline.since(context.now).as_millis()).unwrap_or(u64::MAX);
    for name in wanted(&fetched.subject) {
        let subject = &fetched.subject;
        let Some(verifier) = subject.settings.verifiers.get(&name) else {
            fetched.missing.push(format!("verifier `{}` is asked for and the policy has none", quote::line(&name)));
            continue;
        };
        let trees = Trees { base: &subject.base, tree: &subject.tree, before: before(subject), time_left_ms: left_ms };
        let job = Job {
            workshop: context.workshop,
            blobs: context.blobs,
            redaction: &subject.settings.redaction,
            maker: &maker,
            verifier,
            target: target.as_deref().map(Path::new),
            confinement_required: subject.settings.confinement_required,
            cancel: context.cancel,
        };
        let run = run_verifier(&job, &trees).await.map_err(stop)?;
        left_ms = left_ms.saturating_sub(run.attempts.iter().map(|attempt| attempt.run.duration_ms).sum());
        if let Some(why) = &run.problem {
            fetched.missing.push(format!("verifier `{}` could not be run: {why}", quote::line(&name)));
        }
        evidence.entries.extend(run.evidence.entries.clone());
        fetched.subject.runs.push(run);
    }
    Ok(Verified { fetched, evidence })
}

/// The verifiers that the review runs, and those that the steps at hand ask for.
fn wanted(subject: &Subject) -> BTreeSet<String> {
    let mut names = subject.settings.named.clone();
    let progress = &subject.checkpoint.plan;
    let steps = progress.completed_step_ids.iter().chain(&progress.current_step_id);
    let steps = steps.filter_map(|id| subject.plan.as_ref()?.step(id));
    names.extend(steps.flat_map(|step| step.verify.iter().cloned()));
    names
}

/// What was there before: the accepted tree or, without one, the base.
fn before(subject: &Subject) -> Option<(&'static str, &checkrein_shared::tree::Manifest)> {
    if subject.settings.level(Check::Regression) == Level::Off {
        return None;
    }
    Some(match &subject.accepted_tree {
        Some(accepted) => ("last accepted checkpoint", accepted),
        None => ("base", &subject.base),
    })
}

fn stop(trouble: Trouble) -> Stop {
    match trouble {
        Trouble::Interrupted => Stop::Again(Error::Interrupted),
        Trouble::Blobs(source) => Stop::Again(Error::Blobs { doing: "running a verifier".to_owned(), source }),
        Trouble::Here(why) => Stop::unclear(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sample;

    #[test]
    fn a_review_runs_what_it_names_and_what_the_steps_at_hand_ask_for() {
        let sample = Sample::new().step("one", &[]).step("two", &[]).verifier("lint", true).verifier("unit", true);
        let names = |subject: &Subject| wanted(subject).into_iter().collect::<Vec<_>>().join(" ");
        let mut subject = sample.completed("one").subject();
        assert_eq!(names(&subject), "lint unit");
        subject.settings.named.remove("unit");
        assert_eq!(names(&subject), "lint");
        let plan = subject.plan.as_mut().unwrap();
        plan.steps[0].verify = vec!["unit".into()];
        plan.steps[1].verify = vec!["later".into()];
        assert_eq!(names(&subject), "lint unit");
    }
}
