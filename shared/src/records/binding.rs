//! What a verdict, approval or grant is bound to.
//!
//! Two bindings match only where every field is equal. There is no partial
//! match and no default: a record without one of the fields does not parse.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::ids::{CheckpointId, TaskId};

macro_rules! bindings {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        /// Everything that must be unchanged for a judgement to count.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct Bindings {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Bindings {
            /// The fields in which `now` differs from these bindings, in the order of the record.
            pub fn differences(&self, now: &Self) -> Vec<Mismatch> {
                let mut found = Vec::new();
                $(if self.$field != now.$field {
                    found.push(Mismatch {
                        field: stringify!($field).to_owned(),
                        old: self.$field.to_string(),
                        new: now.$field.to_string(),
                    });
                })*
                found
            }
        }
    };
}

bindings! {
    /// The task.
    task_id: TaskId,
    /// The checkpoint that was judged.
    checkpoint_id: CheckpointId,
    /// Its hash.
    checkpoint_hash: Digest,
    /// The target when the scratch was cut.
    base: Digest,
    /// The scratch.
    tree: Digest,
    /// The plan's version.
    plan_version: u64,
    /// The plan's hash.
    plan_hash: Digest,
    /// The changeset from base to tree.
    changeset_hash: Digest,
    /// Objective and specification.
    spec_hash: Digest,
    /// The constraints, with their versions.
    constraints_hash: Digest,
    /// The resolved policy that the task pins.
    policy_digest: Digest,
    /// The tools that the agent had.
    tool_schema_fingerprint: Digest,
    /// Agent kind and version, provider and model.
    runtime_version: String,
    /// The evidence index.
    evidence_root: Digest,
    /// The checkpoint's place in the chain.
    sequence: u64,
    /// The attempt that wrote it.
    epoch: u64,
}

/// One field that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mismatch {
    /// The field's name.
    pub field: String,
    /// What the judgement is bound to.
    pub old: String,
    /// What it is now.
    pub new: String,
}
