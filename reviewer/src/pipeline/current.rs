//! Third stage: is what was asked about still what counts?
//!
//! A verdict on something that has changed meanwhile would authorise nothing, so
//! the review ends as soon as that is known, and says which field changed.

use checkrein_shared::coordinator::{self, Coordinator};
use checkrein_shared::records::{Bindings, Judgement, ReviewRequest, Severity};

use super::load::Loaded;
use crate::check::{Check, Level, Raised, field};
use crate::error::{Early, Error, Stop};

/// Compares the bindings of the request with those of the record and those in force.
pub(super) async fn verify(
    coordinator: &dyn Coordinator,
    request: &ReviewRequest,
    loaded: &Loaded,
) -> Result<Vec<Raised>, Stop> {
    let level = loaded.settings.level(Check::Currency);
    if level == Level::Off {
        return Ok(Vec::new());
    }
    let now = match coordinator.current_bindings(&request.task_id).await {
        Ok(now) => now,
        Err(coordinator::Error::Refused(why)) => {
            return Err(Stop::unclear(format!("the orchestrator does not say what is current: {why}")));
        }
        Err(error) => return Err(Stop::Again(Error::Coordinator(error))),
    };
    let reasons = faults(request, &loaded.checkpoint.bindings(), now.as_ref());
    let raise =
        |why: &String| Raised::new(Check::Currency, Severity::Medium, why.clone(), vec![field("checkpoint_id")]);
    let raised: Vec<Raised> = reasons.iter().map(raise).collect();
    if raised.is_empty() || level == Level::Warn {
        return Ok(raised);
    }
    Err(Stop::Answer(Early { judgement: Judgement::Inconclusive, raised, reasons }))
}

fn faults(request: &ReviewRequest, record: &Bindings, now: Option<&Bindings>) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(differences("the record differs from the request", &request.bindings, record));
    match now {
        None => found.push("stale: no verdict is asked for on this task any more".to_owned()),
        Some(now) => found.extend(differences("stale", &request.bindings, now)),
    }
    found
}

fn differences(what: &str, asked: &Bindings, found: &Bindings) -> Option<String> {
    let fields: Vec<String> =
        asked.differences(found).into_iter().map(|m| format!("{} {} -> {}", m.field, m.old, m.new)).collect();
    (!fields.is_empty()).then(|| format!("{what}: {}", fields.join(", ")))
}

#[cfg(test)]
mod tests {
    use checkrein_shared::digest::Digest;

    use super::*;
    use crate::testing::{Sample, request};

    #[test]
    fn only_equal_bindings_are_current() {
        let checkpoint = Sample::new().subject().checkpoint;
        let (asked, bindings) = (request(&checkpoint), checkpoint.bindings());
        assert_eq!(faults(&asked, &bindings, Some(&bindings)), Vec::<String>::new());
        assert!(faults(&asked, &bindings, None)[0].contains("no verdict is asked for"));

        let drifted = Bindings { base: Digest::of("the target has changed"), ..bindings.clone() };
        let found = faults(&asked, &bindings, Some(&drifted));
        let expected = format!("stale: base {} -> {}", bindings.base, drifted.base);
        assert_eq!(found, [expected]);

        let other = Bindings { epoch: 2, ..bindings.clone() };
        assert_eq!(faults(&asked, &other, Some(&bindings)).len(), 1);
    }
}
