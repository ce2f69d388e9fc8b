//! Asking the policy's rules, and doing what they say.
//!
//! A rule chooses an action; it never waives a review. `continue` at a gate
//! whose round is not complete, or over an open veto, goes to a person.

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::StepId;
use checkrein_shared::policy::{
    Action, Level, Outcome, ReviewRequirement, RuleEvent, With, evaluate_rules, required_reviews, trigger_fires,
};
use checkrein_shared::records::{Conversation, JobKind, StepAction, Trigger};

use crate::guards::guard;

use super::decision::Timer;
use super::rounds::is_complete;
use super::task::{About, Ruling, State, StepStatus};
use super::turn::{Handled, Turn};

/// What the rules are asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum On {
    /// A round ended.
    Round,
    /// A review did not answer in time.
    Timeout,
    /// A negative verdict came outside its round.
    Late,
    /// An attempt failed, or was lost too often.
    Failed,
    /// A budget is used up.
    Budget { budget: String },
    /// Target and task changed the same files.
    Drift,
    /// Only a person can find out whether an effect happened.
    EffectUnknown { step: StepId, key: Digest },
}

impl On {
    fn event(&self) -> RuleEvent {
        match self {
            Self::Round => RuleEvent::Round,
            Self::Timeout => RuleEvent::Timeout,
            Self::Late => RuleEvent::Late,
            Self::Failed => RuleEvent::Failed,
            Self::Budget { .. } => RuleEvent::Budget,
            Self::Drift => RuleEvent::Drift,
            Self::EffectUnknown { .. } => RuleEvent::EffectUnknown,
        }
    }
}

impl Turn<'_> {
    pub(super) fn ask_rules(&mut self, on: On) -> Handled {
        let outcome = evaluate_rules(self.context.policy, on.event(), &self.facts(None), &self.task.rule_counts);
        *self.task.rule_counts.entry(outcome.rule.clone()).or_default() += 1;
        self.record_ruling(&on, &outcome);
        let message = self.reason(&on, &outcome);
        match outcome.action {
            // Whatever a rule says, nothing repeats an effect on a guess.
            Action::Continue | Action::Warn | Action::Retry | Action::RequestEvidence
                if matches!(on, On::EffectUnknown { .. }) =>
            {
                self.escalate_for(&on, Some(&outcome.level), message);
                Ok(None)
            }
            Action::Continue | Action::Warn => self.rule_continues(&on, &outcome, message),
            Action::Retry => {
                self.retry(&on, conversation(&outcome.with));
                Ok(None)
            }
            Action::RequestEvidence => self.request_evidence(&on, message),
            Action::Block => {
                self.void_grants("a rule blocked the task");
                let redo = matches!(on, On::Round | On::Timeout | On::Late);
                self.enter(State::Blocked { reason: format!("rule `{}`: {message}", outcome.rule), redo });
                Ok(None)
            }
            Action::Escalate => {
                self.escalate_for(&on, Some(&outcome.level), message);
                Ok(None)
            }
            Action::Abort => {
                self.void_grants("a rule ended the task");
                let reason = format!("rule `{}`: {message}", outcome.rule);
                self.enter(State::Done { outcome: super::task::Outcome::Failed { reason } });
                Ok(None)
            }
        }
    }

    fn rule_continues(&mut self, on: &On, outcome: &Outcome, message: String) -> Handled {
        match on {
            On::Round => {
                let complete = matches!(&self.task.state, State::Reviewing { slots } if is_complete(slots));
                let vetoed = self.task.findings.iter().any(|f| f.veto);
                // The rules have been told that it is complete, so this looks a second time and has no name.
                if complete && guard!(VetoStands, !vetoed) {
                    return self.proceed();
                }
                let why =
                    if vetoed { "findings of a negative verdict are still open" } else { "the round is not complete" };
                let reason = format!("rule `{}` says continue, but {why}", outcome.rule);
                self.escalate(Some(&outcome.level), About::Gate {}, reason);
                Ok(None)
            }
            On::Budget { .. } => {
                self.raise_budget();
                self.go_on();
                Ok(None)
            }
            On::Late => match &self.task.state {
                // Nothing is under way any more that the verdict could stop.
                State::Queued { job } if !matches!(job, JobKind::Apply { .. }) => Ok(None),
                _ => {
                    self.escalate(Some(&outcome.level), About::Gate {}, message);
                    Ok(None)
                }
            },
            On::Timeout | On::Failed | On::Drift | On::EffectUnknown { .. } => {
                let reason =
                    format!("rule `{}` says continue, but there is nothing that could go on: {message}", outcome.rule);
                self.escalate_for(on, Some(&outcome.level), reason);
                Ok(None)
            }
        }
    }

    fn retry(&mut self, on: &On, conversation: Conversation) {
        match on {
            // No step has failed: nobody came to carry out what was granted.
            On::Failed if self.task.open_grant().is_some() => self.go_on(),
            On::Failed => {
                let step = self.task.next_step().cloned();
                match step {
                    Some(step) => self.queue(JobKind::Step { step, conversation }),
                    None => self.redo(conversation),
                }
            }
            On::Drift => self.start_over(conversation),
            On::Budget { .. } | On::EffectUnknown { .. } => self.go_on(),
            On::Round | On::Timeout | On::Late => self.redo(conversation),
        }
    }

    /// Sends the work back to the step that can mend it: the newest completed `prompt` step, else the newest
    /// completed one, else the next. What follows it is looked at again.
    pub(super) fn redo(&mut self, conversation: Conversation) {
        let Some(step) = self.step_to_redo() else {
            self.enter(State::Blocked { reason: "the plan has no step that could be done again".into(), redo: true });
            return;
        };
        self.task.steps.insert(step.clone(), StepStatus::Pending);
        for below in self.task.plan.downstream(&step) {
            if self.task.steps.get(&below) == Some(&StepStatus::Completed) {
                self.task.steps.insert(below, StepStatus::PendingReview);
            }
        }
        self.queue(JobKind::Step { step, conversation });
    }

    fn step_to_redo(&self) -> Option<StepId> {
        let completed = self.task.completed();
        let is_prompt =
            |id: &&StepId| self.task.plan.step(id).is_some_and(|s| matches!(s.action, StepAction::Prompt(_)));
        let prompt = completed.iter().rev().find(is_prompt);
        prompt.or(completed.last()).cloned().or_else(|| self.task.next_step().cloned())
    }

    /// Begins the plan again on top of the target as it is now.
    fn start_over(&mut self, conversation: Conversation) {
        self.task.base = self.task.drifted.take().or(self.task.base);
        self.task.tree = None;
        for (step, status) in &mut self.task.steps {
            if !self.task.applied_steps.contains(step) {
                *status = StepStatus::Pending;
            }
        }
        match self.task.next_step().cloned() {
            Some(step) => self.queue(JobKind::Step { step, conversation }),
            None => self.redo(Conversation::Same),
        }
    }

    fn request_evidence(&mut self, on: &On, message: String) -> Handled {
        let step = self.task.subject.as_ref().and_then(|s| s.step.clone());
        match step {
            Some(step) if matches!(on, On::Round | On::Timeout) => {
                self.queue(JobKind::Evidence { step });
                Ok(None)
            }
            _ => {
                self.escalate_for(on, None, message);
                Ok(None)
            }
        }
    }

    fn escalate_for(&mut self, on: &On, level: Option<&str>, reason: String) {
        let about = match on {
            On::Round | On::Timeout | On::Late => About::Gate {},
            On::Budget { budget } => About::Budget { budget: budget.clone() },
            On::Drift => About::Overlap {},
            On::Failed if self.has_redeemed() => About::Interrupted {},
            On::EffectUnknown { step, key } => About::Effect { step: step.clone(), key: *key },
            On::Failed => match self.task.next_step().cloned() {
                Some(step) => {
                    self.control(Trigger::RetryExhausted);
                    About::Failure { step }
                }
                None => About::Gate {},
            },
        };
        self.escalate(level, about, reason);
    }

    /// What people are told: the rule's message, or what stands to reason. The command that settles an effect is never
    /// left out.
    fn reason(&self, on: &On, outcome: &Outcome) -> String {
        match (outcome.message.as_str(), on) {
            ("", on) => self.default_reason(on),
            (message, On::EffectUnknown { .. }) => format!("{message}: {}", self.default_reason(on)),
            (message, _) => message.to_owned(),
        }
    }

    fn default_reason(&self, on: &On) -> String {
        match on {
            On::EffectUnknown { step, key } => self.unknown_text(step, key),
            On::Round => "the policy wants a person to decide about this round".to_owned(),
            On::Timeout => "a review did not answer in time".to_owned(),
            On::Late => "a reviewer objected after the round".to_owned(),
            On::Failed => match self.task.required_actions.last() {
                Some(action) => action.text.clone(),
                None => "the work was lost too often without getting any further".to_owned(),
            },
            On::Budget { budget } => format!("the task has used up its budget: {budget}"),
            On::Drift => match self.task.required_actions.last() {
                Some(action) => action.text.clone(),
                None => "the target changed where this task changes it too".to_owned(),
            },
        }
    }

    fn record_ruling(&mut self, on: &On, outcome: &Outcome) {
        self.task.rulings.push(Ruling {
            version: self.context.version + 1,
            at: self.at,
            on: on.event().as_str().to_owned(),
            rule: outcome.rule.clone(),
            origin: outcome.origin.as_ref().map_or_else(|| "built in".to_owned(), ToString::to_string),
            action: outcome.action.as_str().to_owned(),
            message: Some(outcome.message.clone()).filter(|m| !m.is_empty()),
            values: outcome.values.iter().map(|seen| (seen.name.clone(), seen.value.clone())).collect(),
            checkpoint: self.task.head.clone(),
        });
    }

    pub(super) fn budget_hit(&mut self, budget: &str) -> Handled {
        match &mut self.task.state {
            State::Queued { .. } => {
                self.control(Trigger::BudgetThreshold);
                self.ask_rules(On::Budget { budget: budget.to_owned() })
            }
            State::Running { wish, .. } if wish.is_none() => {
                *wish = Some(super::task::Wish::Budget { budget: budget.to_owned() });
                self.clear(Timer::Wall {});
                Ok(None)
            }
            _ => Ok(Some(super::decision::Reason::NotInThisState)),
        }
    }

    pub(super) fn trigger_is_on(&self, trigger: Trigger) -> bool {
        trigger_fires(self.context.policy, trigger, &self.facts(Some(trigger))).on
    }

    pub(super) fn required_reviews(&self, trigger: Trigger) -> Vec<ReviewRequirement> {
        required_reviews(self.context.policy, trigger, &self.facts(Some(trigger)))
    }

    /// A level by name, or the policy's default.
    pub(super) fn level(&self, name: Option<&str>) -> (String, Level) {
        let policy = self.context.policy.policy();
        let name = name.filter(|n| policy.escalation.contains_key(*n)).unwrap_or(&policy.default_level);
        (name.to_owned(), policy.level(name).clone())
    }
}

fn conversation(with: &With) -> Conversation {
    match with {
        With::Same => Conversation::Same,
        With::Fresh => Conversation::Fresh,
        With::Agent(name) => Conversation::Agent(name.clone()),
    }
}
