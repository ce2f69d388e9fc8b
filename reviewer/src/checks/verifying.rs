//! What the reviewer's own runs of the verifiers say.

use checkrein_shared::records::{Severity, SourceRef};

use crate::check::{Check, Raised};
use crate::quote;
use crate::subject::Subject;
use crate::verifiers::{Attempt, VerifierRun};

/// How many of a failed verifier's last lines a required action quotes.
const QUOTED_LINES: usize = 12;

/// Every verifier that ran passed, each time that it ran.
pub(super) fn verifiers(subject: &Subject) -> Vec<Raised> {
    subject.runs.iter().filter_map(|run| if run.is_flaky() { flaky(run) } else { failed(run) }).collect()
}

fn flaky(run: &VerifierRun) -> Option<Raised> {
    let name = quote::line(&run.name);
    let refs = run.attempts.iter().map(|a| SourceRef::Evidence(a.test.clone())).collect();
    let claim = format!("verifier `{name}` is flaky: two runs on the same tree ended differently");
    Some(
        Raised::new(Check::Verifiers, Severity::High, claim, refs)
            .act(format!("Make `{name}` end the same way each time: it failed, then passed, with nothing changed.")),
    )
}

fn failed(run: &VerifierRun) -> Option<Raised> {
    if run.ok() {
        return None;
    }
    let last = run.attempts.last()?;
    let name = quote::line(&run.name);
    let before = match &run.baseline {
        Some(baseline) if !baseline.passed => format!("; it failed before too, at the {}", baseline.at),
        _ => String::new(),
    };
    let how = ending(last);
    let refs = vec![SourceRef::Evidence(last.test.clone()), SourceRef::Evidence(last.run.log.clone())];
    let command = quote::line(&run.command.join(" "));
    let mut action = format!("Make the verifier `{name}` pass (`{command}` {how})");
    if run.restored.is_empty() {
        action.push('.');
    } else {
        action.push_str(&format!("; it runs with the base's version of {}.", quote::list(&run.restored)));
    }
    let tail = quote::tail(&last.tail, QUOTED_LINES);
    if !tail.is_empty() {
        action.push_str(&format!(" Its output ended, quoted as data:\n{tail}"));
    }
    Some(Raised::new(Check::Verifiers, Severity::High, format!("verifier `{name}` {how}{before}"), refs).act(action))
}

fn ending(attempt: &Attempt) -> String {
    match attempt.run.exit_code {
        _ if attempt.run.timed_out => "ran into its time limit".to_owned(),
        Some(code) => format!("failed with exit code {code}"),
        None => "was ended by a signal or never started".to_owned(),
    }
}

/// No verifier fails that passed at the last accepted checkpoint or, without one, at the base.
pub(super) fn regression(subject: &Subject) -> Vec<Raised> {
    let failing = subject.runs.iter().filter(|run| !run.ok() && !run.is_flaky());
    failing
        .filter_map(|run| {
            let baseline = run.baseline.as_ref().filter(|b| b.passed)?;
            let now = run.attempts.last()?;
            let name = quote::line(&run.name);
            let claim = format!("verifier `{name}` passed at the {} and fails now", baseline.at);
            let refs = vec![SourceRef::Evidence(now.test.clone()), SourceRef::Evidence(baseline.test.clone())];
            Some(
                Raised::new(Check::Regression, Severity::High, claim, refs)
                    .act(format!("Undo what broke `{name}`: it passed at the {}.", baseline.at)),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sample;
    use crate::verifiers::Baseline;

    #[test]
    fn a_passing_verifier_raises_nothing_and_a_failing_one_says_how() {
        assert!(verifiers(&Sample::new().verifier("unit", true).subject()).is_empty());
        let raised = verifiers(&Sample::new().verifier("unit", false).subject());
        assert_eq!(raised.len(), 1);
        assert!(raised[0].claim.contains("failed with exit code 1"));
        assert!(raised[0].action.contains("> "), "{}", raised[0].action);
    }

    #[test]
    fn two_different_runs_are_flaky_and_no_pass() {
        let mut subject = Sample::new().verifier("unit", false).subject();
        let mut second = subject.runs[0].attempts[0].clone();
        second.run.exit_code = Some(0);
        subject.runs[0].attempts.push(second);
        assert!(!subject.runs[0].ok());
        let raised = verifiers(&subject);
        assert!(raised[0].claim.contains("flaky"));
        assert_eq!(raised[0].refs.len(), 2);
        assert!(regression(&subject).is_empty());
    }

    #[test]
    fn a_failure_is_a_regression_only_where_it_passed_before() {
        let mut subject = Sample::new().verifier("unit", false).subject();
        assert!(regression(&subject).is_empty());
        let test = subject.runs[0].attempts[0].test.clone();
        for (passed, expected) in [(true, 1), (false, 0)] {
            subject.runs[0].baseline = Some(Baseline { at: "base", passed, test: test.clone() });
            assert_eq!(regression(&subject).len(), expected);
            assert_eq!(verifiers(&subject)[0].claim.contains("failed before too"), !passed);
        }
    }
}
