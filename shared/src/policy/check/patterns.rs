//! Globs, paths, regular expressions and office hours.

use std::path::{Component, Path};

use super::Faults;
use crate::policy::hours::Hours;
use crate::policy::resolved::Origin;
use crate::policy::{globs, name};

/// The most a compiled regular expression may take, in bytes.
const REGEX_BYTES_MAX: usize = 1 << 20;

pub(super) fn check(faults: &mut Faults<'_>) {
    let policy = faults.policy;
    let top = faults.top();
    path_globs(faults, &top, "workspace.protect", &policy.workspace.protect);
    paths(faults, &top, "workspace.carry", &policy.workspace.carry);
    path_globs(faults, &top, "inherit.except", &policy.inherit.except);
    for (key, verifier) in &policy.verifiers {
        paths(faults, &verifier.origin, &format!("verifier `{key}`, carry"), &verifier.carry);
        path_globs(faults, &verifier.origin, &format!("verifier `{key}`, from_base"), &verifier.from_base);
        path_globs(faults, &verifier.origin, &format!("verifier `{key}`, covers"), &verifier.covers);
        if verifier.argv().is_empty() {
            faults.add(&verifier.origin, format!("verifier `{key}` has no command"), None);
        }
    }
    for tool in policy.tools.iter().flat_map(|layer| &layer.tools) {
        if let Err(message) = globs::tool(&tool.matches) {
            faults.add(&tool.origin, message, None);
        }
    }
    for level in policy.escalation.values() {
        if let Some(Err(message)) = level.hours.as_deref().map(str::parse::<Hours>) {
            faults.add(&level.origin, message.to_string(), None);
        }
    }
    for pattern in &policy.redaction.extra {
        if !name::is_valid(&pattern.id) {
            faults.add(&top, format!("redaction: `{}` can't name a pattern", pattern.id), name::RULE.to_owned());
        }
        let built = regex::RegexBuilder::new(&pattern.regex).size_limit(REGEX_BYTES_MAX).build();
        match built {
            Err(error) => faults.add(&top, format!("redaction pattern `{}`: {error}", pattern.id), None),
            Ok(regex) if regex.is_match("") => {
                let message = format!("redaction pattern `{}` matches nothing at all, everywhere", pattern.id);
                faults.add(&top, message, "make it match at least one character".to_owned());
            }
            Ok(_) => {}
        }
    }
}

fn path_globs(faults: &mut Faults<'_>, origin: &Origin, what: &str, patterns: &[String]) {
    for pattern in patterns {
        if let Err(message) = globs::path(pattern) {
            faults.add(origin, format!("{what}: {message}"), None);
        }
    }
}

/// Paths below the workspace, without globs.
fn paths(faults: &mut Faults<'_>, origin: &Origin, what: &str, paths: &[String]) {
    for path in paths {
        let below = !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if !below || path.contains('\0') {
            faults.add(origin, format!("{what}: `{path}` is not a path below the workspace"), None);
        }
    }
}
