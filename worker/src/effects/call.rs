//! Says exactly what a step would run: arguments, directory and environment,
//! in a form that is the same in every attempt.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::StepId;
use checkrein_shared::json;
use checkrein_shared::records::{CallArguments, EffectCall, Job};

use super::KEY_VARIABLE;
use crate::environment::Variables;

/// Variables whose values differ from attempt to attempt without meaning anything; the key follows from the call itself.
const PER_ATTEMPT: [&str; 7] = [
    "HOME",
    "TMPDIR",
    "CHECKREIN_ATTEMPT",
    "CHECKREIN_INSTRUCTION",
    "CHECKREIN_RESULT",
    "CHECKREIN_RUN_STATE",
    KEY_VARIABLE,
];

/// A whole run of a step's agent. What reviewers sent back is another run; what was lost is the same one.
pub(crate) fn of_agent(
    step: &StepId,
    (agent, prompt): (&[String], &str),
    round: u32,
    variables: &Variables,
) -> EffectCall {
    let values = serde_json::json!({ "agent": agent, "prompt": Digest::of(prompt), "round": round });
    let values = json::canonical(&values).expect("texts, a digest and a small number have a canonical form");
    EffectCall {
        tool: EffectCall::agent_of(step),
        arguments: CallArguments::Values(String::from_utf8_lossy(&values).into_owned()),
        ..of_step(step, &[], variables)
    }
}

/// The call of a step's command.
pub(crate) fn of_step(step: &StepId, argv: &[String], variables: &Variables) -> EffectCall {
    let named = |(name, value): (&std::ffi::OsString, &std::ffi::OsString)| {
        let name = name.to_string_lossy().into_owned();
        let value = (!PER_ATTEMPT.contains(&name.as_str())).then(|| Digest::of(value.as_bytes()));
        (name, value)
    };
    EffectCall {
        step: step.clone(),
        tool: EffectCall::tool_of(step),
        arguments: CallArguments::Command(argv.to_vec()),
        // A step runs one command, so it is always the first among identical ones.
        ordinal: 0,
        cwd: ".".to_owned(),
        environment: variables.iter().map(named).collect::<BTreeMap<_, _>>(),
    }
}

/// The idempotency key of a call: the same in every attempt, so that the other side can tell a repetition.
pub(crate) fn key_of(job: &Job, call: &EffectCall) -> Digest {
    call.key(&job.task_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(variables: &[(&str, &str)]) -> EffectCall {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        of_step(&"deploy".parse().unwrap(), &["make".into(), "deploy".into()], &variables)
    }

    #[test]
    fn what_differs_from_attempt_to_attempt_makes_no_other_call() {
        let one =
            call(&[("PATH", "/bin"), ("HOME", "/rooms/1/home"), ("TMPDIR", "/rooms/1"), ("CHECKREIN_ATTEMPT", "1")]);
        let two =
            call(&[("PATH", "/bin"), ("HOME", "/rooms/2/home"), ("TMPDIR", "/rooms/2"), ("CHECKREIN_ATTEMPT", "2")]);
        assert_eq!(one.hash(), two.hash());
    }

    #[test]
    fn another_value_one_more_name_and_one_less_are_other_calls() {
        let one = call(&[("PATH", "/bin"), ("HOME", "/h")]).hash();
        for other in [
            call(&[("PATH", "/other"), ("HOME", "/h")]),
            call(&[("PATH", "/bin"), ("HOME", "/h"), ("LANG", "C")]),
            call(&[("PATH", "/bin")]),
        ] {
            assert_ne!(one, other.hash(), "{:?}", other.environment);
        }
    }

    #[test]
    fn no_value_of_the_environment_is_written_down() {
        let text = serde_json::to_string(&call(&[("TOKEN", "hunter2hunter2")])).unwrap();
        assert!(text.contains("TOKEN") && !text.contains("hunter2"), "{text}");
    }
}
