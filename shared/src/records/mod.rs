//! The records that roles exchange and the store keeps.
//!
//! Each is plain data: strict when read, canonical when hashed, with a JSON
//! Schema published by [`schemas`]. They hold no floats and no secrets. What
//! may follow from a record is decided elsewhere.

mod binding;
mod checkpoint;
mod effect;
mod evidence;
mod handling;
mod job;
mod message;
mod plan;
mod result_file;
mod save_point;
mod scale;
mod schema;
mod task;
mod verdict;

pub use binding::{Bindings, Mismatch};
pub use checkpoint::{
    ApprovalRef, Author, ChangesetRef, ChangesetState, Checkpoint, CheckpointRef, Claim, ConstraintRef, EvidenceState,
    FORMAT as CHECKPOINT_FORMAT, Integrity, IntegrityError, IssueRef, Objective, PlanProgress, Precondition, Resume,
    Summary, Trigger, WorkspaceState,
};
pub use effect::{
    Allowance, CALL_BYTES_MAX, CallArguments, EFFECT_FORMAT, EffectCall, EffectEntry, EffectGate, EffectResult,
    EffectStatus, Remedy, Witness,
};
pub use evidence::{Evidence, EvidenceIndex, EvidenceKind, EvidenceRef, InvalidEvidenceRef, Producer, TestRun};
pub use handling::Handling;
pub use job::{Conversation, Job, JobKind, RequiredAction};
pub use message::{Attempt, AttemptOutcome, CheckpointMessage, JobMessage, ReviewKind, ReviewRequest, VerdictMessage};
pub use plan::{EffectClass, Plan, PlanError, STEPS_MAX, Step, StepAction};
pub use result_file::{ClaimedResult, RESULT_BYTES_MAX, ResultFile, ResultFileError};
pub use save_point::{
    CheckOutcome, Checked, LaterEffect, REASON_CHARS_MAX, RUN_STATE_BYTES_MAX, RunStateRef, SavePoint, StepBegan,
};
pub use scale::{Basis, Confidence, Risk, Role, Severity};
pub use schema::schemas;
pub use task::{AgentSpec, Budgets, Constraint, HomeDir, SpecText, TaskSpec, WorkspaceSpec};
pub use verdict::{
    Coverage, Finding, FindingStatus, Judgement, Reviewer, ReviewerType, SourceRef, Verdict, VerifierOutcome,
};
