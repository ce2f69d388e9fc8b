//! What a task keeps of its effects: those of the step at hand that are open.
//! Everything else about them is in the ledger.

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{GrantId, StepId};
use checkrein_shared::records::{Bindings, EffectClass, Remedy};
use serde::{Deserialize, Serialize};

/// An effect that waits, runs, or has an unknown outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenEffect {
    /// Its idempotency key: the name of its entry.
    pub key: Digest,
    /// The step that it belongs to.
    pub step: StepId,
    /// The digest of exactly what would run.
    pub call: Digest,
    /// What it does outside the scratch.
    pub class: EffectClass,
    /// Where it stands.
    pub standing: Standing,
    /// The hash of the checkpoint that shows exactly this call to those who have to agree.
    pub shown: Option<Digest>,
    /// Who has to agree before it starts; `None` where nobody does, or the permission is used up.
    pub gate: Option<CallGate>,
    /// Whether the plan wants something else by now: nobody is asked about it, and nobody forgets it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub superseded: bool,
}

/// Where an open effect stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Standing {
    /// It has not started.
    NotStarted {},
    /// A worker may have started it.
    Claimed {
        /// The attempt.
        epoch: u64,
    },
    /// Nobody knows whether it happened.
    Unknown {
        /// What can be done about that.
        remedy: Remedy,
    },
}

/// The gate before an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CallGate {
    /// It is closed.
    Closed {
        /// Whether a person has to agree, besides the reviews.
        person: bool,
    },
    /// It is open once, for exactly this call on exactly these bindings.
    Open {
        /// Whether a person had to agree.
        person: bool,
        /// The permission.
        grant: GrantId,
        /// What it is bound to.
        bindings: Box<Bindings>,
        /// The people who approved.
        approved_by: Vec<String>,
    },
}

impl CallGate {
    /// Whether a person has to agree.
    pub fn wants_person(&self) -> bool {
        matches!(self, Self::Closed { person: true } | Self::Open { person: true, .. })
    }
}
