//! A crash at every step: the same call goes on, or takes everything back.

use super::*;

/// Stops an apply at each step in turn; `then` finds the target as the crash left it. Returns how many steps there are.
async fn after_each_crash(atomic: bool, then: impl AsyncFn(&Setting, usize)) -> usize {
    for number in 0.. {
        let at = setting().await;
        let request = Apply { atomic, steps: stop_at(number), ..at.request() };
        match at.apply(&request).await {
            Err(Error::Stopped) => then(&at, number).await,
            other => {
                assert!(matches!(other, Ok(Outcome::Applied(_))), "{other:?}");
                return number;
            }
        }
    }
    unreachable!("the loop ends when no step is left to stop at")
}

#[tokio::test]
async fn the_same_call_goes_on_from_a_crash_at_any_step() {
    for atomic in [true, false] {
        let steps = after_each_crash(atomic, async |at, number| {
            let request = Apply { atomic, ..at.request() };
            assert!(matches!(at.apply(&request).await.unwrap(), Outcome::Applied(_)), "step {number}");
            assert_eq!(at.state(), at.after, "step {number}");
            assert_eq!(at.finish().await, Finished::default(), "step {number}");
            assert!(!at.target.join(STAGE).exists(), "step {number}");
        })
        .await;
        assert!(steps > 40, "every path has several steps: {steps}");
    }
}

#[tokio::test]
async fn a_second_crash_during_the_repair_is_repaired_too() {
    after_each_crash(true, async |at, number| {
        for second in [0, 3, 8, 13] {
            let request = Apply { steps: stop_at(second), ..at.request() };
            let result = at.apply(&request).await;
            assert!(matches!(result, Err(Error::Stopped) | Ok(Outcome::Applied(_))), "steps {number}, {second}");
        }
        assert!(matches!(at.apply_quietly().await.unwrap(), Outcome::Applied(_)), "step {number}");
        assert_eq!(at.state(), at.after, "step {number}");
    })
    .await;
}

#[tokio::test]
async fn an_edit_after_a_crash_takes_everything_back_and_keeps_the_edit() {
    for name in ["changed", "zero", "moved/from", "type"] {
        after_each_crash(true, async |at, number| {
            let file = at.target.join(name);
            let _ = fs::remove_file(&file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "theirs").unwrap();
            let outcome = at.apply_quietly().await.unwrap();
            let Outcome::Conflict { conflicts, not_undone } = outcome else { panic!("step {number}: {name}") };
            assert_eq!(conflicts[0].path.as_path(), Path::new(name), "step {number}");
            assert!(not_undone.iter().all(|p| p.as_path() == Path::new(name)), "step {number}: {not_undone:?}");
            let mut expected = at.before.clone();
            let mode = at.state()[Path::new(name)].1;
            expected.insert(name.into(), (b"theirs".to_vec(), mode));
            assert_eq!(at.state(), expected, "step {number}: {name}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_crash_while_everything_is_taken_back_is_repaired_by_the_next_call() {
    for number in 0.. {
        let at = setting().await;
        // The last path that is swapped is edited just before, so that all others are undone.
        let target = at.target.clone();
        let stop = Mutex::new(number);
        let steps: Steps = Arc::new(move |step| {
            match step {
                Step::Swapping(path) if path.as_bytes() == b"zero" => fs::write(target.join("zero"), "theirs").unwrap(),
                Step::Undoing(_) => {
                    let mut left = stop.lock().unwrap();
                    if *left == 0 {
                        return Err(Stopped);
                    }
                    *left -= 1;
                }
                _ => {}
            }
            Ok(())
        });
        let first = at.apply(&Apply { steps, ..at.request() }).await;
        let stopped = matches!(first, Err(Error::Stopped));
        if stopped {
            assert!(matches!(at.apply_quietly().await.unwrap(), Outcome::Conflict { .. }), "{number}");
        }
        let mut expected = at.before.clone();
        expected.insert("zero".into(), at.state()[Path::new("zero")].clone());
        assert_eq!(at.state(), expected, "{number}");
        if !stopped {
            assert!(number > 10, "every path that was done is undone in a step of its own");
            return;
        }
    }
}
