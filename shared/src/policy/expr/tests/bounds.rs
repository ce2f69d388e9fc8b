//! Stack and time that an expression can take.

use std::time::{Duration, Instant};

use super::*;

/// Runs on a small stack, as threads of the runtime have.
fn on_a_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap()
}

#[test]
fn no_nesting_overflows_a_small_stack() {
    let nested =
        |open: &str, close: &str, levels: usize| format!("{}true{}", open.repeat(levels), close.repeat(levels));
    let mut sources = vec![
        nested("(", ")", 500),
        nested("!(", ")", 300),
        nested("[", "]", 500),
        nested("true ? ", " : false", 60),
        format!("{}true", "!".repeat(1_000)),
        format!("{}1 == 1", "-".repeat(1_000)),
        format!("{}1 == 1", "1+".repeat(500)),
        format!("{}true", "true&&".repeat(170)),
        format!("{}true", "true==".repeat(170)),
        format!("task{}", ".id".repeat(300)),
        format!("call.args{} == 1", "['a']".repeat(150)),
        format!("{}true{}", "changeset.paths.all(p,".repeat(40), ")".repeat(40)),
        "(".repeat(1_024),
        "\"".repeat(1_023),
        "'''".repeat(300),
        "a ? b : ".repeat(120),
        "\\".repeat(1_000),
    ];
    for levels in 1..=40 {
        sources.push(nested("(", ")", levels));
        sources.push(nested("!(", ")", levels));
    }
    on_a_small_stack(move || {
        for source in sources {
            if let Ok(expression) = compile(Scope::Rule, &source) {
                let _ = expression.evaluate(&World::new(&facts()), &mut Vec::new());
            }
        }
    });
    assert!(compile(Scope::Rule, &nested("(", ")", 20)).is_ok());
    assert!(compile(Scope::Rule, &nested("!(", ")", 40)).unwrap_err().message.contains("nested deeper"));
    refused(&format!("{}1 == 1", "1+".repeat(60)), "nested deeper", "");
    refused(&" ".repeat(2_000), "longer than 1024 bytes", "");
    refused(" ", "empty", "");
}

#[test]
fn the_cost_of_an_evaluation_is_bounded() {
    let mut facts = facts();
    facts.changeset.paths = (0..20_000).map(|n| format!("src/some/folder/file-{n}.rs")).collect();
    assert_eq!(run(Scope::Rule, "changeset.paths.all(p, glob(p, 'src/**'))", &facts), Ok(true));
    let expression = compile(Scope::Rule, "changeset.paths.all(p, changeset.paths.all(q, p != q + 'x'))").unwrap();
    let world = World::new(&facts);
    let start = Instant::now();
    let error = on_a_small_stack(move || expression.evaluate(&world, &mut Vec::new())).unwrap_err();
    assert_eq!(error.message, "the evaluation takes too many steps");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}
