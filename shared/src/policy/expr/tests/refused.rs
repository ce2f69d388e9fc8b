//! What is refused before anything runs.

use super::*;

#[test]
fn misspelt_names_are_errors_with_the_nearest_known_name() {
    refused("verdict.rund > 3 || true", "unknown name `verdict`", "");
    refused("round.rejektions > 0", "no field `rejektions`", "did you mean `rejections`?");
    refused("has(round.complet)", "no field `complet`", "did you mean `complete`?");
    refused("ruond.n > 1", "unknown name `ruond`", "did you mean `round`?");
    refused("changeset.paths.exist(p, true)", "unknown method `exist`", "did you mean `exists`?");
    refused("glop('a', 'b')", "unknown function `glop`", "did you mean `glob`?");
    refused("verifiers.link.ok", "no field `link`", "did you mean `links`?");
    refused("'linkz' in verifiers", "no field `linkz`", "did you mean `links`?");
    refused("reviews.exists(r, r.verdict == 'reject')", "'reject' is never a verdict", "did you mean `rejected`?");
    refused("trigger in ['changeset.before_aply']", "is never a trigger", "did you mean `changeset.before_apply`?");
    refused("step.risk == 'R5'", "'R5' is never a risk", "");
}

#[test]
fn types_are_checked_before_anything_runs() {
    refused("'yes'", "must be a bool; this is a string", "");
    refused("round.n", "must be a bool; this is an int", "");
    refused("round.n == '4'", "an int can't be compared with a string", "");
    refused("round.n && true", "`&&` needs a bool; this is an int", "");
    refused("!round.n", "`!` needs a bool", "");
    refused("round.n > 1u", "unsigned", "write `1`");
    refused("round.n > 1.5", "fractions", "");
    refused("tests == null", "ever null", "has(..)");
    refused("round.n + 'a' == 'b'", "can't be calculated", "");
    refused("reviews.verdict == 'rejected'", "a list of a review has no field `verdict`", ".exists(");
    refused("changeset.paths.contains('a')", "only a string can be asked this", "in list");
    refused("f.severity < 'high'", "unknown name `f`", "");
    refused("open_findings.exists(f, f.severity > 'low')", "a severity has no order", "list the words");
    refused("round.n in ['a']", "an int is never in a list of string", "");
    refused("['a', 1] == []", "the list mixes", "");
    refused("changeset.paths[0]", "must be a bool", "");
    refused("changeset.paths['a'] == 'b'", "can't be indexed with a string", "");
    refused("true ? 1 : 'a'", "chooses between", "");
    refused("{'a': true}.a", "mappings can't be written", "");
    refused("Foo{a: 1}.a", "can't be made", "");
    refused(".round.n > 1", "unknown name `.round`", "");
    refused("b'a' == b'a'", "byte strings", "");
}

#[test]
fn what_is_no_cel_says_so_in_few_words() {
    refused("round.n >", "not a CEL expression: it ends too early", "");
    refused("round.n > 1)", "not a CEL expression: extraneous input ')'", "");
    refused("round.n = 1", "not a CEL expression: ", "");
    refused("round.n > 1 and true", "not a CEL expression: ", "");
}

#[test]
fn functions_want_their_arguments() {
    refused("glob(changeset.paths, 'a')", "`glob` needs a string", "");
    refused("glob('a', task.objective)", "must be written out", "");
    refused("glob('a', '[')", "is not a glob", "");
    refused("glob('a', '/etc/*')", "never matches", "");
    refused("glob('a')", "wrong arguments", "glob(path");
    refused("sample(checkpoint, 101)", "no percentage", "");
    refused("sample(round, 10)", "draws from the checkpoint", "sample(checkpoint");
    refused("has(round)", "asks for a field", "has(a.b)");
    refused("changeset.paths.exists(true, true)", "names a variable", "");
    refused("changeset.paths.exists(round, true)", "is taken", "");
    refused("size(round.n) > 1", "has no size", "");
    refused("exists(changeset.paths, p, true)", "unknown function `exists`", "x.exists(..)");
}

#[test]
fn a_name_that_another_place_sees_says_so() {
    let error = compile(Scope::Checkpoint, "round.n > 1").unwrap_err();
    assert!(error.hint.unwrap().contains("seen by a rule's condition"));
    let error = compile(Scope::Tool, "changeset.files > 1").unwrap_err();
    assert!(error.hint.unwrap().contains("not by a tool's condition"));
}

#[test]
fn errors_say_at_which_byte() {
    assert_eq!(compile(Scope::Rule, "round.n > 1 && rnd.n > 1").unwrap_err().offset, 15);
    assert_eq!(compile(Scope::Rule, "'é' == 'é' && rnd.n > 1").unwrap_err().offset, 16);
    assert_eq!(compile(Scope::Rule, "true &&\n  (").unwrap_err().offset, 11);
}

#[test]
fn macros_nest_two_levels_and_no_deeper() {
    let two = "changeset.paths.all(p, changeset.paths.exists(q, p == q))";
    assert!(compile(Scope::Rule, two).is_ok());
    refused("changeset.paths.all(p, changeset.paths.all(q, changeset.paths.all(r, true)))", "deeper than 2", "");
}
