//! Escalation levels that ask each other for ever.

use super::{Warning, warn};
use crate::policy::resolved::ResolvedPolicy;

pub(super) fn lint(policy: &ResolvedPolicy, warnings: &mut Vec<Warning>) {
    for (name, level) in &policy.escalation {
        let mut asked = vec![name.as_str()];
        let mut next = level.next.as_deref();
        while let Some(current) = next {
            if asked.contains(&current) {
                // The cycle is reported once, at each level that is part of it.
                if current == name {
                    asked.push(current);
                    let message = format!("level `{name}` has no end: {}", asked.join(" -> "));
                    warn(warnings, &level.origin, message);
                }
                break;
            }
            asked.push(current);
            next = policy.escalation.get(current).and_then(|level| level.next.as_deref());
        }
    }
}
