//! The policies that simulations run under: from the shipped ones to odd mixtures with small limits.

use std::sync::{Arc, LazyLock};

use checkrein_shared::policy::{CompiledPolicy, load_text};

pub(crate) struct Policy {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) compiled: Arc<CompiledPolicy>,
}

const VERIFIER: &str = "verifiers:\n  unit: {run: [sh, test.sh], timeout: 1m, network: none, carry: [], from_base: [], covers: [\"**\"]}\n";

/// Name and text; every text stands on a shipped policy.
const TEXTS: &[(&str, &str)] = &[
    ("shipped", "version: 1\nextends: default\n"),
    ("strict", "version: 1\nextends: strict\n"),
    (
        "witnessed",
        r#"
version: 1
extends: default
workspace: {apply: per_step}
tools:
- {match: "step:*", effect: effectful, mode: human}
triggers:
  changeset.after_apply: {on: true, gate: false}
  plan.subgraph_done: {on: true, gate: false}
  spec.changed: {on: true, gate: false}
reviews:
- {name: rules, kind: rules, on: [changeset.before_apply, plan.subgraph_done, changeset.after_apply], blocking: true, timeout: 10m}
- {name: second, kind: command, command: [sh, look.sh], on: [changeset.before_apply], blocking: false, timeout: 5m}
inherit: {base: relevant}
"#,
    ),
    (
        "panel",
        r#"
version: 1
extends: default
reviews:
- {name: rules, kind: rules, on: [changeset.before_apply], blocking: true, timeout: 10m}
- {name: panel, kind: command, command: [sh, judge.sh], on: [changeset.before_apply], count: 3, quorum: 2, veto: true, blocking: true, timeout: 10m}
escalation:
  owner: {to: [ada, bob, cem], notify: [], deadline: 20m, approvers: 2, exclude: [], on_timeout: refuse}
"#,
    ),
    (
        "majority",
        r#"
version: 1
extends: default
reviews:
- {name: rules, kind: rules, on: [changeset.before_apply], blocking: true, timeout: 10m}
- {name: panel, kind: command, command: [sh, judge.sh], on: [changeset.before_apply], count: 3, quorum: 2, veto: false, blocking: true, timeout: 10m}
rules:
- {id: agreed, on: [round], when: "round.complete", action: continue}
- {id: objected, on: [late], when: "true", action: retry, limit: 2, then: escalate}
inherit: {base: relevant}
"#,
    ),
    (
        "people",
        r#"
version: 1
extends: default
reviews:
- {name: rules, kind: rules, on: [changeset.before_apply], blocking: true, timeout: 10m}
- {name: owner, kind: human, level: lead, on: [changeset.before_apply], blocking: true, timeout: 1h}
escalation:
  lead: {to: [ada], notify: [], deadline: 30m, approvers: 1, exclude: [author, editor], next: board}
  board: {to: [bob, cem], notify: [], deadline: 1h, approvers: 2, exclude: [editor], on_timeout: abort}
rules:
- {id: late-word, on: [late], when: "true", action: escalate, level: lead}
"#,
    ),
    (
        "narrow",
        r#"
version: 1
extends: default
reviews:
- {name: rules, kind: rules, on: [changeset.before_apply, tool.before_high_risk], blocking: true, timeout: 2m}
rules:
- {id: again, on: [round], when: "round.rejections > 0", action: retry, limit: 1, then: block}
- {id: silence, on: [timeout], when: "true", action: retry, limit: 1, then: abort}
- {id: spent-all, on: [budget], when: "true", action: continue, limit: 2, then: escalate}
- {id: broke, on: [failed], when: "attempt.failures < 2", action: retry, with: fresh, limit: 3, then: block}
tools:
- {match: "step:*", effect: effectful, mode: gate}
budgets:
  task: {turns: 100, tokens: 100000, cost_micros: 100000, wall: 2m, rounds: 3}
escalation:
  owner: {to: [me], notify: [], deadline: 10m, approvers: 1, exclude: [], on_timeout: refuse}
"#,
    ),
    (
        "reckless",
        r#"
version: 1
extends: default
reviews:
- {name: rules, kind: rules, on: [changeset.before_apply], blocking: true, timeout: 5m}
- {name: model, kind: command, command: [sh, judge.sh], on: [changeset.before_apply], count: 2, quorum: 1, veto: true, blocking: true, timeout: 5m}
rules:
- {id: anything, on: [round, timeout, late, failed, drift, budget], when: "true", action: continue}
"#,
    ),
];

pub(crate) static POLICIES: LazyLock<Vec<Policy>> = LazyLock::new(|| {
    let load = |(name, text): &(&'static str, &str)| {
        let text = format!("{text}\n{VERIFIER}");
        let resolved = load_text(name, text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let compiled = resolved.compile().unwrap_or_else(|error| panic!("{name}: {error}"));
        Policy { name, bytes: resolved.to_bytes(), compiled: Arc::new(compiled) }
    };
    TEXTS.iter().map(load).collect()
});
