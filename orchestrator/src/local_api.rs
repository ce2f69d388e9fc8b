//! What people's tools ask, answered from the engine in this process.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use checkrein_shared::api::{
    Acted, Action, Amendment, Api, CollectReport, EFFECTS_PAGE, EffectCursor, Epitaph, Error, EventView, EvidenceView,
    InboxItem, Submission, TaskSummary, TaskView,
};
use checkrein_shared::causes::with_causes;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use checkrein_shared::policy::ResolvedPolicy;
use checkrein_shared::records::{CheckpointRef, EffectEntry, EvidenceIndex, TaskSpec};

use crate::engine::{self, Engine, Handled};
use crate::gc::{self, Collector};
use crate::lifecycle::{EventKind, NewTask, PolicyPin, RULING_TABLE, SpecState, Task, VERDICT_TABLE, VerdictState};
use crate::{describe, ledger, listing, views};

/// The longest that a request for events waits.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// How many links of a task's evidence are followed.
const EVIDENCE_LINKS_MAX: usize = 10_000;

/// The largest blob that people's tools may fetch or store: 64 MiB.
const BLOB_BYTES_MAX: u64 = 64 << 20;

/// Answers people's tools.
pub(crate) struct LocalApi {
    engine: Arc<Engine>,
    collector: Option<Arc<Collector>>,
}

impl LocalApi {
    pub(crate) fn new(engine: Arc<Engine>, collector: Option<Arc<Collector>>) -> Self {
        Self { engine, collector }
    }

    fn collector(&self) -> Result<&Collector, Error> {
        let none = || Error::Unavailable("the store of this instance can't be pruned".to_owned());
        self.collector.as_deref().ok_or_else(none)
    }

    async fn new_task(&self, submission: Submission) -> Result<NewTask, Error> {
        let Submission { spec, policy, policy_name, origin, by } = submission;
        spec.plan.check().map_err(|e| Error::Invalid(e.to_string()))?;
        let bytes = checkrein_shared::json::canonical(&policy).map_err(|e| Error::Invalid(e.to_string()))?;
        let resolved = ResolvedPolicy::from_bytes(&bytes).map_err(|e| Error::Invalid(e.to_string()))?;
        check_verifiers(&spec, &resolved)?;
        let state = self.store_spec(&spec, &resolved).await?;
        let digest = self.engine.blobs().put(&resolved.to_bytes()).await.map_err(|e| unavailable(&e))?;
        let mut random = [0u8; 5];
        getrandom(&mut random)?;
        Ok(NewTask {
            id: TaskId::from_random(random),
            name: spec.name.clone(),
            origin,
            by,
            at: self.engine.clock().now(),
            spec: state,
            policy: PolicyPin { name: policy_name, digest },
            root_id: spec.workspace.root_id(),
            plan: spec.plan,
        })
    }

    /// Stores a specification and makes what the core keeps of it.
    async fn store_spec(&self, spec: &TaskSpec, policy: &ResolvedPolicy) -> Result<SpecState, Error> {
        let bytes = checkrein_shared::json::canonical(spec).map_err(|e| Error::Invalid(e.to_string()))?;
        let record = self.engine.blobs().put(&bytes).await.map_err(|e| unavailable(&e))?;
        let checkrein_shared::records::WorkspaceSpec::Directory(workspace) = &spec.workspace;
        Ok(SpecState {
            record,
            hash: spec.spec_hash(),
            spec_ref: spec.spec_ref().to_owned(),
            objective: spec.objective.clone(),
            workspace: workspace.clone(),
            constraints: policy.constraint_refs(spec),
            labels: spec.labels.clone(),
            budgets: spec.budgets.clone(),
        })
    }

    async fn amendment(&self, task: &Task, amendment: Amendment, by: &str) -> Result<EventKind, Error> {
        let mut spec: TaskSpec =
            self.engine.loader().record("task", task.spec.record).await.map_err(|e| unavailable(&e))?;
        let policy = self.engine.loader().policy(task.policy.digest).await.map_err(|e| unavailable(&e))?;
        let Amendment { objective, spec: text, plan, constraints } = amendment;
        let changes_spec = objective.is_some() || text.is_some() || constraints.is_some();
        spec.objective = objective.unwrap_or(spec.objective);
        spec.spec = text.or(spec.spec);
        spec.constraints = constraints.unwrap_or(spec.constraints);
        let plan = match plan {
            Some(mut plan) => {
                plan.version = task.plan.version + 1;
                plan.check().map_err(|e| Error::Invalid(e.to_string()))?;
                Some(plan)
            }
            None => None,
        };
        if let Some(plan) = &plan {
            spec.plan = plan.clone();
            // Reviewers find the steps of an amended plan by the hash that checkpoints name.
            let steps = checkrein_shared::json::canonical(&plan.steps).map_err(|e| Error::Invalid(e.to_string()))?;
            self.engine.blobs().put(&steps).await.map_err(|e| unavailable(&e))?;
        }
        if !changes_spec && plan.is_none() {
            return Err(Error::Invalid("the amendment changes nothing".into()));
        }
        check_verifiers(&spec, policy.policy())?;
        let state = self.store_spec(&spec, policy.policy()).await?;
        Ok(EventKind::Amended { by: by.to_owned(), spec: Some(Box::new(state)), plan })
    }

    async fn event_for(&self, id: &TaskId, action: Action, by: &str) -> Result<EventKind, Error> {
        let by_name = by.to_owned();
        Ok(match action {
            Action::Pause {} => EventKind::PauseRequested { by: by_name },
            Action::Resume {} => EventKind::ResumeRequested { by: by_name },
            Action::Cancel {} => EventKind::CancelRequested { by: by_name },
            Action::Claim {} => EventKind::ItemClaimed { by: by_name },
            Action::Approve { checkpoint_hash, note } => {
                EventKind::Approved { by: by_name, hash: checkpoint_hash, note }
            }
            Action::Reject { checkpoint_hash, reason } => {
                EventKind::Rejected { by: by_name, hash: checkpoint_hash, reason }
            }
            Action::RequestChanges { checkpoint_hash, text } => {
                EventKind::ChangesRequested { by: by_name, hash: checkpoint_hash, text }
            }
            Action::Takeover { folder } => EventKind::TakeoverRequested { by: by_name, folder },
            Action::HandBack { tree, started_from, note } => {
                self.check_tree(tree).await?;
                EventKind::HandedBack { by: by_name, tree, started_from, note }
            }
            Action::Amend { amendment } => {
                let (task, _) = self.engine.task(id).await.map_err(failed)?;
                self.amendment(&task, amendment, by).await?
            }
            Action::SettleEffect { key, done, reason } => {
                if reason.trim().is_empty() || reason.len() > 2_000 {
                    return Err(Error::Invalid("say how you know, in at most 2000 bytes".into()));
                }
                EventKind::EffectJudged { by: by_name, key, done, reason }
            }
            Action::CloseFinding { finding, reason } => {
                let finding =
                    finding.parse().map_err(|e: checkrein_shared::ids::InvalidId| Error::Invalid(e.to_string()))?;
                EventKind::FindingClosed { by: by_name, finding, reason }
            }
        })
    }

    /// A tree that is handed back must be there, whole.
    async fn check_tree(&self, tree: Digest) -> Result<(), Error> {
        let loaded = checkrein_shared::tree::node::load_tree(self.engine.blobs(), tree).await;
        loaded.map(|_| ()).map_err(|e| Error::Invalid(format!("the tree {tree} can't be read: {}", with_causes(&e))))
    }
}

#[expect(clippy::disallowed_methods, reason = "task ids are drawn at the edge; the core never draws")]
fn getrandom(bytes: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(bytes).map_err(|e| Error::Unavailable(format!("the system gives no random bytes: {e}")))
}

fn check_verifiers(spec: &TaskSpec, policy: &ResolvedPolicy) -> Result<(), Error> {
    for step in &spec.plan.steps {
        if let Some(name) = step.verify.iter().find(|name| !policy.verifiers.contains_key(*name)) {
            let known: Vec<&str> = policy.verifiers.keys().map(String::as_str).collect();
            let known =
                if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
            return Err(Error::Invalid(format!(
                "step `{}` wants the verifier `{name}`, which the policy does not have ({known})",
                step.id
            )));
        }
    }
    Ok(())
}

fn unavailable(error: &dyn std::error::Error) -> Error {
    Error::Unavailable(with_causes(error))
}

fn failed(error: engine::Error) -> Error {
    match &error {
        engine::Error::NoTask(_) => Error::NotFound(error.to_string()),
        engine::Error::Illegal(_) | engine::Error::Busy(_) => Error::Conflict(error.to_string()),
        engine::Error::State { .. } | engine::Error::Inputs(_) => Error::Integrity(with_causes(&error)),
        engine::Error::Store(cause) if cause.is_integrity() => Error::Integrity(with_causes(&error)),
        _ => Error::Unavailable(with_causes(&error)),
    }
}

fn collect_failed(error: gc::Error) -> Error {
    match &error {
        gc::Error::Damage { .. } => Error::Integrity(error.to_string()),
        gc::Error::Busy => Error::Conflict(error.to_string()),
        gc::Error::Store(cause) if cause.is_integrity() => Error::Integrity(with_causes(&error)),
        gc::Error::Task(engine::Error::State { .. } | engine::Error::Inputs(_)) => {
            Error::Integrity(with_causes(&error))
        }
        _ => unavailable(&error),
    }
}

fn ignored(reason: &crate::lifecycle::Reason) -> String {
    use crate::lifecycle::Reason;
    match reason {
        Reason::Duplicate => "that was done already".to_owned(),
        Reason::StaleEpoch | Reason::Superseded => "that is about something that is no longer open".to_owned(),
        Reason::NotInThisState => "nothing to do in the state that the task is in".to_owned(),
        Reason::NotInChain(why) => why.clone(),
        Reason::NoEffect => "it does nothing outside the scratch".to_owned(),
        Reason::EffectDone => "it is known to have happened".to_owned(),
        Reason::EffectUnknown => "nobody knows whether it happened".to_owned(),
        Reason::TooEarly => "it may still be under way".to_owned(),
    }
}

#[async_trait]
impl Api for LocalApi {
    async fn submit(&self, submission: Submission) -> Result<TaskId, Error> {
        let new = self.new_task(submission).await?;
        Ok(self.engine.create(new).await.map_err(failed)?.id)
    }

    async fn tasks(&self) -> Result<Vec<TaskSummary>, Error> {
        let mut rows = Vec::new();
        listing::each_task(&self.engine, |task, _| rows.push(views::summary(&task))).await.map_err(failed)?;
        if let Some(collector) = &self.collector {
            rows.extend(collector.epitaphs().await.map_err(collect_failed)?.into_iter().map(views::pruned_summary));
        }
        rows.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        Ok(rows)
    }

    async fn task(&self, id: &TaskId) -> Result<TaskView, Error> {
        let (task, version) = self.engine.task(id).await.map_err(failed)?;
        let mut verdicts = listing::history(&self.engine, id, VERDICT_TABLE).await.map_err(failed)?;
        verdicts.sort_by(|a: &VerdictState, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        let rulings = listing::history(&self.engine, id, RULING_TABLE).await.map_err(failed)?;
        let conditions = listing::conditions(&self.engine, id).await.map_err(failed)?;
        Ok(views::task_view(&task, version, &views::Past { verdicts, rulings, conditions }))
    }

    async fn events(&self, id: &TaskId, after: u64, wait_ms: u64) -> Result<Vec<EventView>, Error> {
        let mut changes = self.engine.store().changes();
        let deadline = tokio::time::Instant::now() + Duration::from_millis(wait_ms).min(WAIT_MAX);
        self.engine.task(id).await.map_err(failed)?;
        loop {
            let views = listing::event_views(&self.engine, id, after).await.map_err(failed)?;
            if !views.is_empty() || tokio::time::Instant::now() >= deadline {
                return Ok(views);
            }
            if !matches!(tokio::time::timeout_at(deadline, changes.changed()).await, Ok(Ok(()))) {
                return Ok(Vec::new());
            }
        }
    }

    async fn act(&self, id: &TaskId, action: Action, by: &str) -> Result<Acted, Error> {
        if by.trim().is_empty() || by.len() > 100 || by.chars().any(char::is_control) {
            return Err(Error::Invalid("who does it must be a name of at most 100 characters".into()));
        }
        let event = self.event_for(id, action, by).await?;
        let handled = self.engine.handle(id, event.clone(), None).await.map_err(failed)?;
        Ok(match handled {
            Handled::Advanced(task, version) => {
                let view = describe::event_view(version, task.updated_at, &event, &task);
                Acted { state: view.state, text: view.text }
            }
            Handled::Ignored(reason, task) => {
                Acted { state: describe::task_state(&task.state), text: ignored(&reason) }
            }
        })
    }

    async fn inbox(&self) -> Result<Vec<InboxItem>, Error> {
        let mut items = Vec::new();
        listing::each_task(&self.engine, |task, _| items.extend(views::inbox_items(&task))).await.map_err(failed)?;
        items.sort_by(|a, b| (a.deadline.is_none(), a.deadline, &a.id).cmp(&(b.deadline.is_none(), b.deadline, &b.id)));
        Ok(items)
    }

    async fn checkpoints(&self, id: &TaskId) -> Result<Vec<CheckpointRef>, Error> {
        self.engine.task(id).await.map_err(failed)?;
        listing::chain(&self.engine, id).await.map_err(failed)
    }

    async fn evidence(&self, id: &TaskId) -> Result<Vec<EvidenceView>, Error> {
        let (task, _) = self.engine.task(id).await.map_err(failed)?;
        let mut views = Vec::new();
        let mut next = task.evidence_index;
        for _ in 0..EVIDENCE_LINKS_MAX {
            let Some(digest) = next else { break };
            let index: EvidenceIndex =
                self.engine.loader().record("evidence index", digest).await.map_err(|e| failed(e.into()))?;
            let view = |(reference, evidence)| EvidenceView { reference, evidence };
            views.extend(index.entries.into_iter().map(view));
            next = index.previous;
        }
        views.extend(self.reviewers_evidence(&task).await?);
        views.sort_by(|a, b| (a.evidence.created_at, &a.reference).cmp(&(b.evidence.created_at, &b.reference)));
        Ok(views)
    }

    async fn effects(&self, task: Option<&TaskId>, after: Option<&EffectCursor>) -> Result<Vec<EffectEntry>, Error> {
        if let Some(id) = task {
            self.engine.task(id).await.map_err(failed)?;
        }
        let after = after.map(|cursor| (&cursor.task, &cursor.key));
        ledger::page(self.engine.store(), task, after, EFFECTS_PAGE).await.map_err(failed)
    }

    async fn blob(&self, digest: Digest) -> Result<Vec<u8>, Error> {
        self.engine.blobs().get(digest, BLOB_BYTES_MAX).await.map_err(|e| match e {
            checkrein_shared::blob::Error::Missing(_) => Error::NotFound(e.to_string()),
            checkrein_shared::blob::Error::Damaged { .. } => Error::Integrity(e.to_string()),
            checkrein_shared::blob::Error::TooLarge { .. } => Error::Invalid(e.to_string()),
            checkrein_shared::blob::Error::Io { .. } => unavailable(&e),
        })
    }

    async fn put_blob(&self, bytes: Vec<u8>) -> Result<Digest, Error> {
        if bytes.len() as u64 > BLOB_BYTES_MAX {
            return Err(Error::Invalid(format!("a blob may have at most {BLOB_BYTES_MAX} bytes")));
        }
        self.engine.blobs().put(&bytes).await.map_err(|e| unavailable(&e))
    }

    async fn epitaph(&self, id: &TaskId) -> Result<Epitaph, Error> {
        let epitaph = self.collector()?.epitaph(id).await.map_err(collect_failed)?;
        epitaph.ok_or_else(|| Error::NotFound(format!("no task `{id}` was pruned")))
    }

    async fn collect(&self, dry_run: bool) -> Result<CollectReport, Error> {
        self.collector()?.collect(dry_run).await.map_err(collect_failed)
    }
}

impl LocalApi {
    /// What reviewers made themselves, from its verdicts.
    async fn reviewers_evidence(&self, task: &Task) -> Result<Vec<EvidenceView>, Error> {
        let mut views = Vec::new();
        let past: Vec<VerdictState> = listing::history(&self.engine, &task.id, VERDICT_TABLE).await.map_err(failed)?;
        let all = past.iter().chain(&task.verdicts);
        for envelope in all.filter(|v| v.inherited_from.is_none()).filter_map(|v| v.envelope) {
            let envelope: checkrein_shared::signing::Envelope =
                self.engine.loader().record("envelope", envelope).await.map_err(|e| failed(e.into()))?;
            let payload = envelope.payload_unverified().map_err(|e| Error::Integrity(e.to_string()))?;
            let verdict: checkrein_shared::records::Verdict =
                checkrein_shared::json::parse_as("verdict", &payload).map_err(|e| Error::Integrity(with_causes(&e)))?;
            let view = |(reference, evidence)| EvidenceView { reference, evidence };
            views.extend(verdict.evidence.entries.into_iter().map(view));
        }
        Ok(views)
    }
}
