//! For this crate's tests: a consistent subject, and short ways to bend it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{InstanceId, StepId, TaskId};
use checkrein_shared::records::{
    Author, Basis, Budgets, ChangesetRef, ChangesetState, Checkpoint, CheckpointRef, Claim, EffectClass, Evidence,
    EvidenceIndex, EvidenceKind, EvidenceRef, EvidenceState, Integrity, Objective, Plan, PlanProgress, Producer,
    Resume, ReviewKind, ReviewRequest, Risk, Role, Step, StepAction, Summary, TaskSpec, TestRun, Trigger,
    WorkspaceSpec, WorkspaceState,
};
use checkrein_shared::time::Timestamp;
use checkrein_shared::tree::{Changeset, Content, Entry, Manifest, Mode, RelPath, node};

use crate::delta::Delta;
use crate::globs::Globs;
use crate::settings::{Settings, Verifier};
use crate::subject::Subject;
use crate::verifiers::{Attempt, VerifierRun};

/// A file with these bytes.
pub(crate) fn file(content: &str) -> Entry {
    Entry::File {
        digest: Digest::of(content),
        size: content.len() as u64,
        mode: Mode::from_bits(0o644),
        content: Content::Stored,
    }
}

/// A tree of files.
pub(crate) fn manifest(files: &[(&str, &str)]) -> Manifest {
    Manifest::new(files.iter().map(|(path, content)| (path.parse().unwrap(), file(content))).collect()).unwrap()
}

/// Describes a task; [`Sample::subject`] makes everything else fit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    base: BTreeMap<RelPath, String>,
    tree: BTreeMap<RelPath, String>,
    steps: Vec<Step>,
    completed: Vec<StepId>,
    claims: Vec<Claim>,
    next: Vec<Claim>,
    evidence: BTreeMap<EvidenceRef, Evidence>,
    tests: BTreeMap<EvidenceRef, TestRun>,
    runs: Vec<(String, bool)>,
}

fn evidence(step: Option<&str>) -> Evidence {
    Evidence {
        digest: Digest::of("evidence"),
        size: 8,
        media_type: "text/plain".into(),
        produced_by: Producer { role: Role::Worker, instance: "worker-1".parse().unwrap() },
        step: step.map(|s| s.parse().unwrap()),
        created_at: Timestamp::from_millis(0),
        redactions: BTreeMap::new(),
        dropped_bytes: 0,
    }
}

fn claim(text: &str, refs: &[&str]) -> Claim {
    Claim { text: text.into(), refs: refs.iter().map(|r| r.parse().unwrap()).collect(), basis: Basis::SelfReported }
}

impl Sample {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn base(mut self, path: &str, content: &str) -> Self {
        self.base.insert(path.parse().unwrap(), content.into());
        self
    }

    pub(crate) fn tree(mut self, path: &str, content: &str) -> Self {
        self.tree.insert(path.parse().unwrap(), content.into());
        self
    }

    pub(crate) fn step(mut self, id: &str, needs: &[&str]) -> Self {
        self.steps.push(Step {
            id: id.parse().unwrap(),
            action: StepAction::Run(vec!["true".into()]),
            needs: needs.iter().map(|n| n.parse().unwrap()).collect(),
            verify: Vec::new(),
            risk: Risk::R1,
            effect: EffectClass::ReadOnly,
            handling: Default::default(),
        });
        self
    }

    pub(crate) fn completed(mut self, id: &str) -> Self {
        self.completed.push(id.parse().unwrap());
        self
    }

    pub(crate) fn claim(mut self, text: &str, refs: &[&str]) -> Self {
        self.claims.push(claim(text, refs));
        self
    }

    pub(crate) fn next(mut self, text: &str) -> Self {
        self.next.push(claim(text, &[]));
        self
    }

    pub(crate) fn log(mut self, name: &str, step: &str) -> Self {
        self.evidence.insert(name.parse().unwrap(), evidence(Some(step)));
        self
    }

    /// A test run of the worker, with a log `log:<name>`.
    pub(crate) fn test(mut self, name: &str, exit: i64) -> Self {
        let log = EvidenceRef::new(EvidenceKind::Log, name).unwrap();
        self.evidence.insert(log.clone(), evidence(None));
        self.evidence.insert(name.parse().unwrap(), evidence(None));
        let run = TestRun {
            command: vec!["sh".into(), "test.sh".into()],
            tree: Digest::of("tree"),
            exit_code: Some(exit),
            timed_out: false,
            duration_ms: 5,
            log,
        };
        self.tests.insert(name.parse().unwrap(), run);
        self
    }

    pub(crate) fn verifier(mut self, name: &str, passes: bool) -> Self {
        self.runs.push((name.into(), passes));
        self
    }

    fn manifests(&self) -> (Manifest, Manifest) {
        let of = |files: &BTreeMap<RelPath, String>| {
            Manifest::new(files.iter().map(|(path, content)| (path.clone(), file(content))).collect()).unwrap()
        };
        (of(&self.base), of(&self.tree))
    }

    fn deltas(&self, changeset: &Changeset) -> Vec<Delta> {
        let delta = |change: &checkrein_shared::tree::Change| {
            let from = change.from.as_ref().unwrap_or(&change.path);
            let old = self.base.get(from).map(String::as_bytes);
            let new = self.tree.get(&change.path).map(String::as_bytes);
            Delta::between(change.path.clone(), old, new)
        };
        changeset.changes().iter().map(delta).collect()
    }

    fn spec(&self) -> TaskSpec {
        let mut steps = self.steps.clone();
        for id in &self.completed {
            if !steps.iter().any(|s| s.id == *id) {
                steps.push(Step { id: id.clone(), needs: Vec::new(), ..Sample::new().step("x", &[]).steps.remove(0) });
            }
        }
        if steps.is_empty() {
            steps = Sample::new().step("work", &[]).steps;
        }
        TaskSpec {
            format: 1,
            name: "sample".into(),
            objective: "make it work".into(),
            spec: None,
            constraints: Vec::new(),
            workspace: WorkspaceSpec::Directory("/project".into()),
            labels: BTreeMap::new(),
            agent: None,
            plan: Plan { version: 1, steps },
            budgets: Budgets::default(),
        }
    }

    /// The whole.
    pub(crate) fn subject(&self) -> Subject {
        let (base, tree) = self.manifests();
        let changeset = Changeset::between(&base, &tree);
        let spec = self.spec();
        let checkpoint = self.checkpoint(&spec, &base, &tree, &changeset);
        Subject {
            accepted_tree: None,
            settings: settings(self.runs.iter().map(|(name, _)| name.as_str())),
            open: Vec::new(),
            evidence: self.evidence.clone(),
            tests: self.tests.clone(),
            recorded: Some(changeset.digest()),
            applied: BTreeSet::new(),
            accepted_paths: BTreeSet::new(),
            deltas: self.deltas(&changeset),
            plan: Some(spec.plan.clone()),
            runs: self.runs.iter().map(|(name, passes)| run(name, *passes)).collect(),
            checkpoint,
            spec,
            base,
            tree,
            changeset,
        }
    }

    fn checkpoint(&self, spec: &TaskSpec, base: &Manifest, tree: &Manifest, changeset: &Changeset) -> Checkpoint {
        let task: TaskId = "t-sample00".parse().unwrap();
        let pending = spec.plan.steps.iter().map(|s| s.id.clone()).filter(|id| !self.completed.contains(id)).collect();
        let checkpoint = Checkpoint {
            format: 1,
            checkpoint_id: task.checkpoint(1),
            task_id: task.clone(),
            sequence: 1,
            created_at: Timestamp::from_millis(1_000),
            runtime_version: "sh-1".into(),
            state_version: 3,
            epoch: 1,
            trigger: Trigger::ChangesetBeforeApply,
            gate: true,
            policy_digest: Digest::of("policy"),
            tool_schema_fingerprint: Digest::of("tools"),
            author: Author { role: Role::Worker, instance: "worker-1".parse().unwrap() },
            workspace: WorkspaceState {
                root_id: "root-1".parse().unwrap(),
                git_commit: None,
                base: node::root(base),
                tree: node::root(tree),
                confinement: "none: a sample".into(),
            },
            objective: Objective {
                spec_ref: spec.spec_ref().into(),
                spec_hash: spec.spec_hash(),
                text: spec.objective.clone(),
            },
            constraints: Vec::new(),
            plan: PlanProgress {
                version: 1,
                hash: spec.plan.hash(),
                current_step_id: None,
                completed_step_ids: self.completed.clone(),
                pending_step_ids: pending,
            },
            changesets: ChangesetState {
                proposed: ChangesetRef { id: task.changeset(1), hash: changeset.digest() },
                applied: Vec::new(),
            },
            evidence: EvidenceState {
                index: Digest::of("index"),
                test_run_ids: Vec::new(),
                tool_event_ids: Vec::new(),
                artifact_refs: Vec::new(),
            },
            approvals: Vec::new(),
            open_issues: Vec::new(),
            open_errors: Vec::new(),
            resume: Resume { idempotency_key: Digest::of("key"), preconditions: Vec::new(), run_state: None },
            summary: Summary { completed: self.claims.clone(), next: self.next.clone() },
            integrity: Integrity { previous_checkpoint_hash: None, checkpoint_hash: Digest::of("") },
        };
        checkpoint.seal().unwrap()
    }
}

/// A request to review `checkpoint` as it is.
pub(crate) fn request(checkpoint: &Checkpoint) -> ReviewRequest {
    ReviewRequest {
        review_id: checkpoint.task_id.review(checkpoint.sequence, 1, "rules", 1).unwrap(),
        task_id: checkpoint.task_id.clone(),
        review: "rules".into(),
        kind: ReviewKind::Rules,
        round: 1,
        bindings: checkpoint.bindings(),
        checkpoint: CheckpointRef {
            id: checkpoint.checkpoint_id.clone(),
            hash: checkpoint.integrity.checkpoint_hash,
            sequence: checkpoint.sequence,
            record: Digest::of("record"),
        },
        accepted: None,
        spec: Digest::of("spec"),
        policy: Digest::of("policy"),
        open_findings: Digest::of("[]"),
        deadline: Timestamp::from_millis(600_000),
    }
}

fn settings<'a>(verifiers: impl Iterator<Item = &'a str>) -> Settings {
    let verifier = |name: &str| Verifier {
        name: name.into(),
        argv: vec!["sh".into(), "test.sh".into()],
        timeout: Duration::from_secs(5),
        offline: true,
        carry: Vec::new(),
        from_base: Globs::known(&["test.sh", "check.sh"]),
    };
    let verifiers: BTreeMap<String, Verifier> = verifiers.map(|name| (name.to_owned(), verifier(name))).collect();
    Settings { named: verifiers.keys().cloned().collect(), verifiers, ..Settings::everything_blocks() }
}

/// What a verifier did that passed at once, or failed.
pub(crate) fn run(name: &str, passes: bool) -> VerifierRun {
    let log: EvidenceRef = format!("log:verifier/{name}/rv-1/1").parse().unwrap();
    let test: EvidenceRef = format!("test:verifier/{name}/rv-1/1").parse().unwrap();
    let made = Evidence { produced_by: Producer { role: Role::Reviewer, instance: instance() }, ..evidence(None) };
    let run = TestRun {
        command: vec!["sh".into(), "test.sh".into()],
        tree: Digest::of("tree"),
        exit_code: Some(i64::from(!passes)),
        timed_out: false,
        duration_ms: 5,
        log: log.clone(),
    };
    VerifierRun {
        name: name.into(),
        command: run.command.clone(),
        attempts: vec![Attempt { run, test: test.clone(), tail: "1 of 3 tests failed\n".into() }],
        baseline: None,
        restored: BTreeSet::new(),
        problem: None,
        evidence: EvidenceIndex { previous: None, entries: BTreeMap::from([(log, made.clone()), (test, made)]) },
    }
}

/// The reviewer of these tests.
pub(crate) fn instance() -> InstanceId {
    "reviewer-1".parse().unwrap()
}
