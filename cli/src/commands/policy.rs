//! `policy check`, `policy test` and `policy show`.

use std::path::Path;

use checkrein_shared::api::Tone;
use checkrein_shared::policy::{AgentKind, lint, run_policy_tests};
use checkrein_shared::task_file::policy_choice;
use serde_json::json;

use crate::args::PolicyCommand;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::shown;
use crate::submission::load_policy;

/// Carries out a command about policies.
pub(crate) fn run(context: &Context, command: &PolicyCommand) -> Result<Exit, Failure> {
    match command {
        PolicyCommand::Check { policy } => check(context, policy),
        PolicyCommand::Test { policy } => test(context, policy),
        PolicyCommand::Show { policy } => show(context, policy),
    }
}

fn check(context: &Context, name: &str) -> Result<Exit, Failure> {
    let (name, policy) = load_policy(&policy_choice(name, Path::new("")))?;
    let compiled = policy.compile()?;
    let warnings: Vec<String> = lint(&compiled, AgentKind::Any).iter().map(ToString::to_string).collect();
    let tests = run_policy_tests(&compiled);
    let failed: Vec<String> = tests
        .iter()
        .filter_map(|test| test.failure.as_ref().map(|why| format!("{}: test `{}`: {why}", test.origin, test.name)))
        .collect();
    let out = &context.out;
    out.object(&json!({
        "policy": name, "digest": policy.digest(), "warnings": warnings, "tests": tests.len(), "failed": failed
    }))?;
    warnings.iter().for_each(|warning| out.line(shown(warning)));
    failed.iter().for_each(|failure| out.line(shown(failure)));
    let (reviews, rules, verifiers) = (policy.reviews.len(), policy.rules.len(), policy.verifiers.len());
    out.line(format!("{}: {reviews} reviews, {rules} rules, {verifiers} verifiers", shown(&name)));
    out.line(format!("  digest {}", policy.digest()));
    out.line(format!("  {} of {} tests pass, {} warnings", tests.len() - failed.len(), tests.len(), warnings.len()));
    Ok(if failed.is_empty() { Exit::Completed } else { Exit::Usage })
}

fn test(context: &Context, name: &str) -> Result<Exit, Failure> {
    let (_, policy) = load_policy(&policy_choice(name, Path::new("")))?;
    let tests = run_policy_tests(&policy.compile()?);
    let out = &context.out;
    let rows: Vec<_> = tests
        .iter()
        .map(|test| json!({ "name": test.name, "at": test.origin.to_string(), "failure": test.failure }))
        .collect();
    out.object(&rows)?;
    for test in &tests {
        let (tone, word) = if test.passed() { (Tone::Good, "ok") } else { (Tone::Bad, "failed") };
        out.line(format!("{} {} ({})", out.toned(tone, word), shown(&test.name), test.origin));
        if let Some(why) = &test.failure {
            out.line(format!("    {}", shown(why)));
        }
    }
    if tests.is_empty() {
        out.note("the policy has no tests");
    }
    Ok(if tests.iter().all(|test| test.passed()) { Exit::Completed } else { Exit::Usage })
}

fn show(context: &Context, name: &str) -> Result<Exit, Failure> {
    let (_, policy) = load_policy(&policy_choice(name, Path::new("")))?;
    let out = &context.out;
    out.object(&policy)?;
    let text = serde_json::to_string_pretty(&policy).map_err(|error| Failure::caused("can't write JSON", &error))?;
    out.line(text);
    Ok(Exit::Completed)
}
