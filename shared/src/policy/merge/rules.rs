//! The order of rules: every floor, the root's first; then the others, the
//! most derived file's first.

use super::Report;
use super::draft::{Draft, key};
use crate::policy::file::RuleFile;
use crate::policy::load::Layer;
use crate::policy::resolved::Rule;
use crate::policy::yaml::Segment;

pub(super) fn add_rules(draft: &mut Draft<'_>, layer: &Layer, report: &mut Report<'_>) {
    let mut floors = Vec::new();
    let mut rules: Vec<Rule> = Vec::new();
    for (index, written) in layer.file.rules.iter().enumerate() {
        let rule = rule(written, layer, index);
        if rule.then.is_some() && rule.limit.is_none() {
            report.add(&rule.origin, format!("rule `{}` has a `then` but no `limit`", rule.id));
        }
        if let Some(first) = floors.iter().chain(&rules).find(|known: &&Rule| known.id == rule.id) {
            let message = format!("there are two rules `{}`, the first in line {}", rule.id, first.origin.line);
            report.add(&rule.origin, message);
        } else if let Some(floor) = draft.floors.iter().find(|known| known.id == rule.id) {
            let message = format!("`{}` is a floor rule of {} and can't be replaced", rule.id, floor.origin);
            report.hinted(&rule.origin, message, "choose another id");
        } else if rule.floor {
            floors.push(rule);
        } else {
            rules.push(rule);
        }
    }
    // A rule of the same id takes the parent's place; that one is gone.
    draft.rules.retain(|parent| !floors.iter().chain(&rules).any(|rule| rule.id == parent.id));
    draft.floors.extend(floors);
    rules.append(&mut draft.rules);
    draft.rules = rules;
}

fn rule(written: &RuleFile, layer: &Layer, index: usize) -> Rule {
    let path = [key("rules"), Segment::Index(index), key("when")];
    Rule {
        id: written.id.clone(),
        floor: written.floor,
        on: written.on.clone(),
        when: layer.when(&written.when, &path),
        action: written.action,
        with: written.with.clone().unwrap_or_default(),
        message: written.message.clone(),
        limit: written.limit,
        then: written.then,
        level: written.level.clone(),
        origin: layer.origin(&path[..2]),
    }
}
