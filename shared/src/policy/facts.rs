//! What expressions can see: plain values that the caller fills in.
//!
//! They are independent of the records, so that the orchestrator's core and a
//! worker can both make them. Reading them decides nothing. Each field is
//! declared once more, with its type, in the schema that expressions are
//! checked against; a test keeps the two together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

macro_rules! facts {
    ($($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }
    )*};
}

facts! {
    /// Everything that the expressions of one evaluation see.
    #[derive(Default)]
    Facts {
        /// The task.
        task: TaskFacts,
        /// The step that is being worked on.
        step: StepFacts,
        /// The attempt at it.
        attempt: AttemptFacts,
        /// What has been used of the budgets.
        budget: BudgetFacts,
        /// The trigger of the checkpoint, by name.
        trigger: String,
        /// The checkpoint.
        checkpoint: CheckpointFacts,
        /// The changes since the last accepted checkpoint.
        changeset: ChangesetFacts,
        /// Tests.
        tests: TestFacts,
        /// The agent's context window.
        context: ContextFacts,
        /// The tool call; `None` where there is none, and reading it is then an error.
        call: Option<CallFacts>,
        /// The review round.
        round: RoundFacts,
        /// The newest verdict of each reviewer.
        reviews: Vec<ReviewFacts>,
        /// Findings that are not closed, however old.
        open_findings: Vec<FindingFacts>,
        /// Outcomes of verifiers by name; one that did not run is not in it.
        verifiers: BTreeMap<String, VerifierFacts>,
        /// What drifted.
        drift: DriftFacts,
        /// Whether a person edited the work since the last accepted checkpoint.
        human_changed: bool,
    }

    /// The task.
    #[derive(Default)]
    TaskFacts {
        /// Its id.
        id: String,
        /// Its labels.
        labels: BTreeMap<String, String>,
        /// Its objective.
        objective: String,
    }

    /// A step.
    StepFacts {
        /// Its id.
        id: String,
        /// Its risk, `R0` to `R4`.
        risk: String,
    }

    /// An attempt.
    #[derive(Default)]
    AttemptFacts {
        /// Its number, from 1.
        n: i64,
        /// How many attempts in a row failed.
        failures: i64,
        /// How many of them failed with the same error on the same input.
        same_error: i64,
    }

    /// Budgets in per cent; 0 where there is no limit.
    #[derive(Default)]
    BudgetFacts {
        /// Model turns.
        turns_pct: i64,
        /// Cost.
        cost_pct: i64,
        /// Time under lease.
        wall_pct: i64,
    }

    /// A checkpoint.
    #[derive(Default)]
    CheckpointFacts {
        /// Its place in the chain.
        seq: i64,
        /// How many issues it leaves open.
        open_issues: i64,
        /// Its hash. Expressions do not see it; `sample` draws from it.
        hash: String,
    }

    /// A changeset.
    #[derive(Default)]
    ChangesetFacts {
        /// How many files it touches.
        files: i64,
        /// How many lines it adds and removes.
        lines: i64,
        /// The paths that it touches, old and new.
        paths: Vec<String>,
        /// Whether it touches a protected path.
        touched_protected: bool,
    }

    /// Tests.
    #[derive(Default)]
    TestFacts {
        /// How many fail that passed at the last accepted checkpoint.
        regressed: i64,
    }

    /// A context window.
    #[derive(Default)]
    ContextFacts {
        /// How full it is.
        used_pct: i64,
    }

    /// A tool call.
    CallFacts {
        /// The tool's full name, such as `builtin:run_command` or `mcp:payments/transfer`.
        name: String,
        /// The server, or `builtin`.
        server: String,
        /// The arguments.
        args: Map<String, Value>,
        /// For a command: its argument vector.
        argv: Vec<String>,
        /// For a command: its directory, relative to the scratch.
        cwd: String,
        /// The effect class that the server's hints raise the call to; `read_only` where they raise nothing.
        effect: String,
        /// How many calls of this tool with these arguments the task made before.
        prior: i64,
    }

    /// A review round.
    #[derive(Default)]
    RoundFacts {
        /// Its number, from 1.
        n: i64,
        /// Whether every blocking review has its quorum of valid and current approvals, and no veto stands.
        complete: bool,
        /// How many verdicts approve.
        approvals: i64,
        /// How many reject or require changes.
        rejections: i64,
        /// How many could not tell.
        inconclusive: i64,
        /// The lowest share of the required evidence that a reviewer fetched.
        coverage_pct: i64,
    }

    /// A verdict.
    #[derive(Default)]
    ReviewFacts {
        /// The review's name.
        name: String,
        /// Its kind.
        kind: String,
        /// The verdict; empty where none was given in time.
        verdict: String,
        /// The risk as the reviewer sees it.
        risk: String,
        /// Whether it is current.
        current: bool,
        /// How many findings it has.
        findings: i64,
    }

    /// A finding that is not closed.
    #[derive(Default)]
    FindingFacts {
        /// Its id.
        id: String,
        /// How grave it is.
        severity: String,
        /// Where it stands.
        status: String,
        /// For how many rounds it has been open.
        age_rounds: i64,
    }

    /// The outcome of a verifier.
    #[derive(Default)]
    VerifierFacts {
        /// Whether it passed.
        ok: bool,
        /// Its exit code; -1 where a signal or the time limit ended it.
        exit: i64,
        /// Whether two runs on one tree differed.
        flaky: bool,
    }

    /// What drifted.
    #[derive(Default)]
    DriftFacts {
        /// The target is no longer the base.
        base: bool,
        /// The plan changed.
        plan: bool,
        /// Specification or constraints changed.
        spec: bool,
    }
}

impl Default for StepFacts {
    fn default() -> Self {
        Self { id: String::new(), risk: "R1".to_owned() }
    }
}

impl Default for CallFacts {
    fn default() -> Self {
        Self {
            name: String::new(),
            server: String::new(),
            args: Map::new(),
            argv: Vec::new(),
            cwd: String::new(),
            effect: "read_only".to_owned(),
            prior: 0,
        }
    }
}
