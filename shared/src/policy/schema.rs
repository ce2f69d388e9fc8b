//! The JSON Schema of policy files, for editors.
//!
//! It describes what may be written where. What must fit together across a file
//! only loading it can tell.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::file::PolicyFile;

/// The JSON Schema of a policy file.
pub fn file_schema() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<PolicyFile>().into()
}
