//! A task as a worker would hand it in: trees, changeset, evidence and checkpoint, all in the blob store.

use std::collections::BTreeMap;
use std::path::Path;

use checkrein_shared::blob::{Blobs, FsBlobs};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use checkrein_shared::json;
use checkrein_shared::records::{
    Author, Basis, Budgets, ChangesetRef, ChangesetState, Checkpoint, CheckpointRef, Claim, EffectClass, Evidence,
    EvidenceIndex, EvidenceRef, EvidenceState, Finding, Integrity, Objective, Plan, PlanProgress, Producer, Resume,
    ReviewKind, ReviewRequest, Risk, Role, Step, StepAction, Summary, TaskSpec, Trigger, WorkspaceSpec, WorkspaceState,
};
use checkrein_shared::time::Timestamp;
use checkrein_shared::tree::{Changeset, Content, Entry, Manifest, Mode, node};

pub(crate) const POLICY: &str = r#"
version: 1
verifiers:
  unit: {run: [sh, test.sh], timeout: 20s, network: none, from_base: [test.sh]}
"#;

/// The buggy project of these tests.
pub(crate) const BUG: [(&str, &str); 2] = [
    ("add.sh", "echo $(($1 - $2))\n"),
    ("test.sh", "got=$(sh add.sh 2 3)\n[ \"$got\" = 5 ] || { echo \"2 + 3 gave $got\"; exit 1; }\n"),
];

pub(crate) const FIX: (&str, &str) = ("add.sh", "echo $(($1 + $2))\n");

#[derive(Clone)]
pub(crate) struct Task {
    pub(crate) policy: String,
    base: BTreeMap<String, Vec<u8>>,
    tree: BTreeMap<String, Vec<u8>>,
    claims: Vec<Claim>,
    pub(crate) open: Vec<Finding>,
    pub(crate) round: u32,
    pub(crate) kind: ReviewKind,
    after: Option<CheckpointRef>,
}

/// What was stored, and the request that asks about it.
pub(crate) struct Stored {
    pub(crate) request: ReviewRequest,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) changeset: Changeset,
}

impl Task {
    /// A task on a project, with nothing changed yet.
    pub(crate) fn on(files: &[(&str, &str)]) -> Self {
        let base: BTreeMap<String, Vec<u8>> = files.iter().map(|(p, c)| ((*p).into(), c.as_bytes().to_vec())).collect();
        Self {
            policy: POLICY.into(),
            tree: base.clone(),
            base,
            claims: Vec::new(),
            open: Vec::new(),
            round: 1,
            kind: ReviewKind::Rules,
            after: None,
        }
    }

    /// The same task later: what was reviewed is accepted.
    pub(crate) fn after(mut self, accepted: &Stored) -> Self {
        self.after = Some(accepted.request.checkpoint.clone());
        self
    }

    fn sequence(&self) -> u64 {
        self.after.as_ref().map_or(1, |accepted| accepted.sequence + 1)
    }

    pub(crate) fn write(mut self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.tree.insert(path.into(), content.as_ref().to_vec());
        self
    }

    pub(crate) fn delete(mut self, path: &str) -> Self {
        self.tree.remove(path).unwrap();
        self
    }

    pub(crate) fn claim(mut self, text: &str, refs: &[&str]) -> Self {
        let refs = refs.iter().map(|r| r.parse().unwrap()).collect();
        self.claims.push(Claim { text: text.into(), refs, basis: Basis::SelfReported });
        self
    }

    pub(crate) fn policy(mut self, text: &str) -> Self {
        self.policy = text.into();
        self
    }

    pub(crate) fn round(mut self, round: u32) -> Self {
        self.round = round;
        self
    }

    /// Stores everything, as a worker and the orchestrator would.
    pub(crate) async fn store(&self, blobs: &FsBlobs, target: &Path) -> Stored {
        let base = self.manifest(blobs, &self.base).await;
        let tree = self.manifest(blobs, &self.tree).await;
        let changeset = Changeset::between(&base, &tree);
        let hash = blobs.put(&changeset.to_bytes()).await.unwrap();
        let spec = spec(target);
        let policy = checkrein_shared::policy::load_text("task.yaml", self.policy.as_bytes()).unwrap();
        let policy = blobs.put(&policy.to_bytes()).await.unwrap();
        let index = self.index(blobs).await;
        let (base, tree) = (put_tree(blobs, &base).await, put_tree(blobs, &tree).await);
        let checkpoint = self.checkpoint(&spec, policy, index, base, tree, hash);
        let record = put(blobs, &checkpoint).await;
        let request = ReviewRequest {
            review_id: checkpoint.task_id.review(self.sequence(), self.round, "rules", 1).unwrap(),
            task_id: checkpoint.task_id.clone(),
            review: "rules".into(),
            kind: self.kind,
            round: self.round,
            bindings: checkpoint.bindings(),
            checkpoint: CheckpointRef {
                id: checkpoint.checkpoint_id.clone(),
                hash: checkpoint.integrity.checkpoint_hash,
                sequence: self.sequence(),
                record,
            },
            accepted: self.after.clone(),
            spec: put(blobs, &spec).await,
            policy,
            open_findings: put(blobs, &self.open).await,
            deadline: Timestamp::now().plus(std::time::Duration::from_secs(600)),
        };
        Stored { request, checkpoint, changeset }
    }

    async fn manifest(&self, blobs: &FsBlobs, files: &BTreeMap<String, Vec<u8>>) -> Manifest {
        let digests = blobs.put_all(files.values().cloned().collect()).await.unwrap();
        let entry = |content: &Vec<u8>, digest| Entry::File {
            digest,
            size: content.len() as u64,
            mode: Mode::from_bits(0o644),
            content: Content::Stored,
        };
        let entries = files.iter().zip(digests).map(|((p, c), digest)| (p.parse().unwrap(), entry(c, digest)));
        Manifest::new(entries.collect()).unwrap()
    }

    async fn index(&self, blobs: &FsBlobs) -> Digest {
        let output = b"agent: done\n";
        let evidence = Evidence {
            digest: blobs.put(output).await.unwrap(),
            size: output.len() as u64,
            media_type: "text/plain".into(),
            produced_by: Producer { role: Role::Worker, instance: "worker-1".parse().unwrap() },
            step: Some("fix".parse().unwrap()),
            created_at: Timestamp::from_millis(0),
            redactions: BTreeMap::new(),
            dropped_bytes: 0,
        };
        let log: EvidenceRef = "log:fix".parse().unwrap();
        put(blobs, &EvidenceIndex { previous: None, entries: BTreeMap::from([(log, evidence)]) }).await
    }

    fn checkpoint(
        &self,
        spec: &TaskSpec,
        policy: Digest,
        index: Digest,
        base: Digest,
        tree: Digest,
        changeset: Digest,
    ) -> Checkpoint {
        let task: TaskId = "t-reviewed".parse().unwrap();
        let checkpoint = Checkpoint {
            format: 1,
            checkpoint_id: task.checkpoint(self.sequence()),
            task_id: task.clone(),
            sequence: self.sequence(),
            created_at: Timestamp::from_millis(1_000),
            runtime_version: "sh-1".into(),
            state_version: 3,
            epoch: 1,
            trigger: Trigger::ChangesetBeforeApply,
            gate: true,
            policy_digest: policy,
            tool_schema_fingerprint: Digest::of("no tools"),
            author: Author { role: Role::Worker, instance: "worker-1".parse().unwrap() },
            workspace: WorkspaceState {
                root_id: spec.workspace.root_id(),
                git_commit: None,
                base,
                tree,
                confinement: "none: nothing ran".into(),
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
                completed_step_ids: vec!["fix".parse().unwrap()],
                pending_step_ids: Vec::new(),
            },
            changesets: ChangesetState {
                proposed: ChangesetRef { id: task.changeset(self.sequence()), hash: changeset },
                applied: Vec::new(),
            },
            evidence: EvidenceState {
                index,
                test_run_ids: Vec::new(),
                tool_event_ids: Vec::new(),
                artifact_refs: Vec::new(),
            },
            approvals: Vec::new(),
            open_issues: Vec::new(),
            open_errors: Vec::new(),
            resume: Resume { idempotency_key: Digest::of("key"), preconditions: Vec::new(), run_state: None },
            summary: Summary { completed: self.claims.clone(), next: Vec::new() },
            integrity: Integrity {
                previous_checkpoint_hash: self.after.as_ref().map(|accepted| accepted.hash),
                checkpoint_hash: Digest::of(""),
            },
        };
        checkpoint.seal().unwrap()
    }
}

fn spec(target: &Path) -> TaskSpec {
    let step = Step {
        id: "fix".parse().unwrap(),
        action: StepAction::Prompt("fix the bug".into()),
        needs: Vec::new(),
        verify: Vec::new(),
        risk: Risk::R1,
        effect: EffectClass::ReadOnly,
        handling: Default::default(),
    };
    TaskSpec {
        format: 1,
        name: "fix".into(),
        objective: "addition adds".into(),
        spec: None,
        constraints: Vec::new(),
        workspace: WorkspaceSpec::Directory(target.to_str().unwrap().into()),
        labels: BTreeMap::new(),
        agent: None,
        plan: Plan { version: 1, steps: vec![step] },
        budgets: Budgets::default(),
    }
}

async fn put<T: serde::Serialize>(blobs: &FsBlobs, record: &T) -> Digest {
    blobs.put(&json::canonical(record).unwrap()).await.unwrap()
}

async fn put_tree(blobs: &FsBlobs, manifest: &Manifest) -> Digest {
    node::store_tree(blobs, manifest, None).await.unwrap()
}
