//! Reads a file's own examples. They are not inherited: a child may well decide
//! them otherwise.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Report;
use super::draft::key;
use crate::policy::facts::Facts;
use crate::policy::load::Layer;
use crate::policy::resolved::PolicyTest;
use crate::policy::words::RuleEvent;
use crate::policy::yaml::Segment;

pub(super) fn read(layer: &Layer, report: &mut Report<'_>) -> Vec<PolicyTest> {
    let mut tests = Vec::new();
    for (index, written) in layer.file.tests.iter().enumerate() {
        let path = [key("tests"), Segment::Index(index), key("given")];
        match given(&written.given) {
            Ok((on, fired, facts)) => tests.push(PolicyTest {
                name: written.name.clone(),
                on,
                fired,
                facts,
                expect: written.expect.clone(),
                origin: layer.origin(&path[..2]),
            }),
            Err(message) => report.add(&layer.origin(&path), format!("test `{}`: {message}", written.name)),
        }
    }
    tests
}

type Given = (RuleEvent, BTreeMap<String, u32>, Facts);

fn given(given: &Map<String, Value>) -> Result<Given, String> {
    let mut facts = given.clone();
    let on = facts.remove("on").map(part).transpose()?.unwrap_or(RuleEvent::Round);
    let fired = facts.remove("fired").map(part).transpose()?.unwrap_or_default();
    Ok((on, fired, part(Value::Object(facts))?))
}

fn part<T: for<'de> Deserialize<'de>>(value: Value) -> Result<T, String> {
    T::deserialize(value).map_err(|error| error.to_string())
}
