//! Turns a folded draft into a resolved policy: what is still missing is
//! either filled with the strict choice or is a problem.

use std::collections::BTreeMap;

use super::Report;
use super::draft::Draft;
use super::reviewing::Named;
use super::tests_section;
use crate::policy::file::{LevelFile, LimitsFile, ReviewFile, TriggerFile, VerifierFile};
use crate::policy::name;
use crate::policy::resolved::{
    Budgets, Checks, FORMAT, Inherit, Level, Limits, Origin, Redaction, ResolvedPolicy, Retention, Review, SizeLimit,
    Source, TriggerRule, Triggers, Verifier, When, Workspace,
};
use crate::policy::words::{ApplyTo, ApplyWhen, Confinement, InheritBase, Network, OnTimeout};
use crate::records::{ReviewKind, Trigger};
use crate::time::Span;

const REVIEW_TIMEOUT: Span = Span::from_secs(10 * 60);
const VERIFIER_TIMEOUT: Span = Span::from_secs(10 * 60);
const DEADLINE: Span = Span::from_secs(24 * 60 * 60);
const MAX_INTERVAL: Span = Span::from_secs(30 * 60);
const KEPT: Span = Span::from_secs(30 * 24 * 60 * 60);
const SIZE: SizeLimit = SizeLimit { files: 200, lines: 5_000 };

pub(super) fn finish(draft: Draft<'_>, report: &mut Report<'_>) -> Option<ResolvedPolicy> {
    let top = *draft.layers.first().expect("a chain has a layer");
    let tests = tests_section::read(top, report);
    let verifiers: BTreeMap<_, _> = draft
        .verifiers
        .into_iter()
        .filter_map(|(name, named)| Some((name.clone(), verifier(&name, named, report)?)))
        .collect();
    let names: Vec<String> = verifiers.keys().cloned().collect();
    let reviews = draft.reviews.into_iter().filter_map(|named| review(named, &names, report)).collect();
    let mut rules = draft.floors;
    rules.extend(draft.rules);
    let Some(default_level) = draft.default_level else {
        report.add(&top.origin(&[]), "there is no escalation level");
        return None;
    };
    let workspace = draft.workspace;
    Some(ResolvedPolicy {
        format: FORMAT,
        name: top.built_in.unwrap_or(&top.name).to_owned(),
        sources: draft.layers.iter().map(|l| Source { file: l.name.clone(), digest: l.digest }).collect(),
        constraints: draft.constraints,
        workspace: Workspace {
            protect: workspace.protect,
            carry: workspace.carry,
            apply: workspace.apply.unwrap_or(ApplyWhen::AtEnd),
            to: workspace.to.unwrap_or(ApplyTo::Worktree),
            commit: workspace.commit.unwrap_or(false),
            confinement: workspace.confinement.unwrap_or(Confinement::Required),
        },
        tools: draft.tools,
        triggers: Triggers {
            by_name: triggers(draft.triggers, &top.origin(&[])),
            min_interval: draft.min_interval.unwrap_or(Span::from_millis(0)),
            max_interval: draft.max_interval.unwrap_or(MAX_INTERVAL),
        },
        verifiers,
        reviews,
        rules,
        inherit: Inherit {
            base: draft.inherit.base.unwrap_or(InheritBase::Whole),
            except: draft.inherit.except.unwrap_or_default(),
        },
        escalation: draft.levels.into_iter().map(|(name, named)| (name, level(named))).collect(),
        default_level,
        budgets: Budgets {
            task: limits(&draft.budgets.task),
            step: limits(&draft.budgets.step),
            review: limits(&draft.budgets.review),
        },
        redaction: Redaction { packs: draft.packs, extra: draft.patterns },
        retention: Retention { done: draft.retention.unwrap_or(KEPT) },
        checks: Checks {
            modes: draft.modes,
            size: SizeLimit {
                files: draft.size_files.unwrap_or(SIZE.files),
                lines: draft.size_lines.unwrap_or(SIZE.lines),
            },
        },
        tests,
    })
}

fn limits(written: &LimitsFile) -> Limits {
    Limits {
        turns: written.turns,
        tokens: written.tokens,
        cost_micros: written.cost_micros,
        wall: written.wall,
        rounds: written.rounds,
    }
}

/// Every trigger; one that no file mentions is on and a gate, so that nothing passes for lack of a word.
fn triggers(mut written: BTreeMap<Trigger, Named<TriggerFile>>, top: &Origin) -> BTreeMap<Trigger, TriggerRule> {
    let mut rule = |trigger: &Trigger| {
        let named = written.remove(trigger);
        let origin = named.as_ref().map_or_else(|| top.clone(), |named| named.origin.clone());
        let Named { written, when, .. } = named.unwrap_or_default();
        TriggerRule {
            on: written.on.unwrap_or(true),
            gate: written.gate.unwrap_or(true),
            when: condition(written.when, when),
            at: written.at.unwrap_or_default(),
            origin,
        }
    };
    Trigger::ALL.iter().map(|trigger| (*trigger, rule(trigger))).collect()
}

fn condition(source: Option<String>, origin: Option<Origin>) -> Option<When> {
    source.zip(origin).map(|(source, origin)| When { source, origin })
}

fn verifier(name: &str, named: Named<VerifierFile>, report: &mut Report<'_>) -> Option<Verifier> {
    let Named { written, origin, .. } = named;
    if !name::is_valid(name) {
        report.hinted(&origin, format!("`{name}` can't name a verifier"), name::RULE);
        return None;
    }
    let Some(run) = written.run else {
        report.add(&origin, format!("verifier `{name}` has no `run`"));
        return None;
    };
    Some(Verifier {
        run,
        timeout: written.timeout.unwrap_or(VERIFIER_TIMEOUT),
        network: written.network.unwrap_or(Network::None),
        carry: written.carry.unwrap_or_default(),
        from_base: written.from_base.unwrap_or_default(),
        covers: written.covers.unwrap_or_else(|| vec!["**".to_owned()]),
        origin,
    })
}

fn review(named: Named<ReviewFile>, verifiers: &[String], report: &mut Report<'_>) -> Option<Review> {
    let Named { written, origin, when } = named;
    let Some(kind) = written.kind else {
        report.add(&origin, format!("review `{}` has no `kind`", written.name));
        return None;
    };
    let Some(on) = written.on else {
        let message = format!("review `{}` has no `on`", written.name);
        report.hinted(&origin, message, "such as `on: [changeset.before_apply]`");
        return None;
    };
    let meaningless = [
        ("verifiers", written.verifiers.is_some(), ReviewKind::Rules),
        ("model", written.model.is_some(), ReviewKind::Model),
        ("command", written.command.is_some(), ReviewKind::Command),
        ("level", written.level.is_some(), ReviewKind::Human),
    ];
    for (key, _, _) in meaningless.iter().filter(|(_, said, of)| *said && *of != kind) {
        report.add(&origin, format!("`{key}` means nothing for review `{}`, which is of another kind", written.name));
    }
    let runs =
        if kind == ReviewKind::Rules { written.verifiers.unwrap_or_else(|| verifiers.to_vec()) } else { Vec::new() };
    Some(Review {
        name: written.name,
        kind,
        on,
        when: condition(written.when, when),
        verifiers: runs,
        blocking: written.blocking.unwrap_or(true),
        count: written.count.unwrap_or(1),
        quorum: written.quorum.unwrap_or_default(),
        veto: written.veto.unwrap_or(true),
        independent: written.independent.unwrap_or_default(),
        must_read: written.must_read.unwrap_or_default(),
        timeout: written.timeout.unwrap_or(REVIEW_TIMEOUT),
        model: written.model,
        command: written.command,
        level: written.level,
        origin,
    })
}

fn level(named: Named<LevelFile>) -> Level {
    let Named { written, origin, .. } = named;
    Level {
        to: written.to.unwrap_or_default(),
        notify: written.notify.unwrap_or_default(),
        deadline: written.deadline.unwrap_or(DEADLINE),
        hours: written.hours,
        approvers: written.approvers.unwrap_or(1),
        exclude: written.exclude.unwrap_or_default(),
        next: written.next,
        on_timeout: written.on_timeout.unwrap_or(OnTimeout::Block),
        origin,
    }
}
