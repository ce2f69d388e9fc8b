//! The fold: from the root of the chain to the most derived file.

use std::collections::BTreeMap;

use super::Report;
use super::reviewing::{Named, merge_level, merge_review, merge_trigger, merge_verifier};
use super::rules::add_rules;
use crate::policy::file::{
    BudgetsFile, InheritFile, LevelFile, LimitsFile, PatternFile, PolicyFile, ReviewFile, TriggerFile, VerifierFile,
    WorkspaceFile,
};
use crate::policy::load::Layer;
use crate::policy::resolved::{Constraint, Rule, Tool, ToolLayer};
use crate::policy::words::{CheckMode, CheckName, RedactionPack};
use crate::policy::yaml::Segment;
use crate::records::Trigger;
use crate::time::Span;

/// Everything that the files said so far; what none said is missing still.
#[derive(Default)]
pub(super) struct Draft<'a> {
    /// The most derived first, once folded.
    pub(super) layers: Vec<&'a Layer>,
    pub(super) constraints: Vec<Constraint>,
    pub(super) workspace: WorkspaceFile,
    pub(super) tools: Vec<ToolLayer>,
    pub(super) triggers: BTreeMap<Trigger, Named<TriggerFile>>,
    pub(super) min_interval: Option<Span>,
    pub(super) max_interval: Option<Span>,
    pub(super) verifiers: BTreeMap<String, Named<VerifierFile>>,
    pub(super) reviews: Vec<Named<ReviewFile>>,
    pub(super) floors: Vec<Rule>,
    pub(super) rules: Vec<Rule>,
    pub(super) inherit: InheritFile,
    pub(super) levels: BTreeMap<String, Named<LevelFile>>,
    pub(super) default_level: Option<String>,
    pub(super) budgets: BudgetsFile,
    pub(super) packs: Vec<RedactionPack>,
    pub(super) patterns: Vec<PatternFile>,
    pub(super) retention: Option<Span>,
    pub(super) modes: BTreeMap<CheckName, CheckMode>,
    pub(super) size_files: Option<u32>,
    pub(super) size_lines: Option<u32>,
}

pub(super) fn key(name: &str) -> Segment {
    Segment::Key(name.to_owned())
}

pub(super) fn fold<'a>(layers: &'a [Layer], report: &mut Report<'_>) -> Draft<'a> {
    let mut draft = Draft::default();
    for layer in layers.iter().rev() {
        draft.layers.insert(0, layer);
        draft.add(layer, report);
    }
    draft
}

impl Draft<'_> {
    fn add(&mut self, layer: &Layer, report: &mut Report<'_>) {
        let file = &layer.file;
        self.add_constraints(layer, report);
        self.add_tools(layer);
        self.add_triggers(layer);
        for (name, verifier) in &file.verifiers {
            let origin = layer.key_origin("verifiers", name);
            merge_verifier(self.verifiers.entry(name.clone()).or_default(), verifier, origin);
        }
        for (index, review) in file.reviews.iter().enumerate() {
            merge_review(&mut self.reviews, review, layer, index, report);
        }
        for (name, level) in &file.escalation {
            let origin = layer.key_origin("escalation", name);
            merge_level(self.levels.entry(name.clone()).or_default(), level, origin);
        }
        if let Some(first) = layer.keys("escalation").first() {
            self.default_level = Some((*first).to_owned());
        }
        add_rules(self, layer, report);
        self.add_settings(file);
        self.add_checks(layer, report);
    }

    fn add_settings(&mut self, file: &PolicyFile) {
        extend_new(&mut self.workspace.protect, &file.workspace.protect);
        extend_new(&mut self.workspace.carry, &file.workspace.carry);
        replace(&mut self.workspace.apply, &file.workspace.apply);
        replace(&mut self.workspace.to, &file.workspace.to);
        replace(&mut self.workspace.commit, &file.workspace.commit);
        replace(&mut self.workspace.confinement, &file.workspace.confinement);
        replace(&mut self.inherit.base, &file.inherit.base);
        replace(&mut self.inherit.except, &file.inherit.except);
        replace(&mut self.min_interval, &file.triggers.min_interval);
        replace(&mut self.max_interval, &file.triggers.max_interval);
        replace(&mut self.retention, &file.retention.done);
        add_limits(&mut self.budgets.task, &file.budgets.task);
        add_limits(&mut self.budgets.step, &file.budgets.step);
        add_limits(&mut self.budgets.review, &file.budgets.review);
        extend_new(&mut self.packs, &file.redaction.packs);
        for pattern in &file.redaction.extra {
            match self.patterns.iter_mut().find(|known| known.id == pattern.id) {
                Some(known) => known.regex.clone_from(&pattern.regex),
                None => self.patterns.push(pattern.clone()),
            }
        }
    }

    fn add_constraints(&mut self, layer: &Layer, report: &mut Report<'_>) {
        for (index, written) in layer.file.constraints.iter().enumerate() {
            let origin = layer.origin(&[key("constraints"), Segment::Index(index)]);
            let text = match layer.constraint_text(written) {
                Ok(text) => text,
                Err(message) => {
                    report.add(&origin, message);
                    continue;
                }
            };
            let constraint = Constraint {
                id: written.id.clone(),
                version: written.version,
                hash: crate::digest::Digest::of(&text),
                text,
                origin: origin.clone(),
            };
            match self.constraints.iter_mut().find(|known| known.id == written.id) {
                Some(known) if known.version < written.version => *known = constraint,
                Some(known) => {
                    let message = format!("constraint `{}` has version {} already", known.id, known.version);
                    report.hinted(&origin, message, "raise the version, or choose another id");
                }
                None => self.constraints.push(constraint),
            }
        }
    }

    fn add_tools(&mut self, layer: &Layer) {
        if layer.file.tools.is_empty() {
            return;
        }
        let tools = layer.file.tools.iter().enumerate().map(|(index, tool)| {
            let path = [key("tools"), Segment::Index(index), key("when")];
            Tool {
                matches: tool.matches.clone(),
                effect: tool.effect,
                mode: tool.mode,
                when: tool.when.as_ref().map(|source| layer.when(source, &path)),
                timeout: tool.timeout,
                probe: tool.probe.clone(),
                dry_run: tool.dry_run.clone(),
                compensate: tool.compensate.clone(),
                origin: layer.origin(&path[..2]),
            }
        });
        self.tools.insert(0, ToolLayer { file: layer.name.clone(), tools: tools.collect() });
    }

    fn add_triggers(&mut self, layer: &Layer) {
        for (trigger, written) in &layer.file.triggers.by_name {
            let when = layer.origin(&[key("triggers"), key(trigger.as_str()), key("when")]);
            let origin = layer.key_origin("triggers", trigger.as_str());
            merge_trigger(self.triggers.entry(*trigger).or_default(), written, origin, when);
        }
    }

    fn add_checks(&mut self, layer: &Layer, report: &mut Report<'_>) {
        for (name, check) in &layer.file.checks {
            if let Some(mode) = check.mode {
                self.modes.insert(*name, mode);
            }
            if *name == CheckName::Size {
                replace(&mut self.size_files, &check.files);
                replace(&mut self.size_lines, &check.lines);
            } else if check.files.is_some() || check.lines.is_some() {
                let origin = layer.key_origin("checks", name.as_str());
                report.add(&origin, format!("the check `{name}` has no `files` or `lines`"));
            }
        }
    }
}

pub(super) fn replace<T: Clone>(known: &mut Option<T>, said: &Option<T>) {
    if said.is_some() {
        known.clone_from(said);
    }
}

fn extend_new<T: PartialEq + Clone>(known: &mut Vec<T>, said: &[T]) {
    for item in said {
        if !known.contains(item) {
            known.push(item.clone());
        }
    }
}

fn add_limits(known: &mut LimitsFile, said: &LimitsFile) {
    replace(&mut known.turns, &said.turns);
    replace(&mut known.tokens, &said.tokens);
    replace(&mut known.cost_micros, &said.cost_micros);
    replace(&mut known.wall, &said.wall);
    replace(&mut known.rounds, &said.rounds);
}
