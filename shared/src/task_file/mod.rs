//! Task files: YAML in, a complete [`TaskSpec`](crate::records::TaskSpec) out.
//!
//! Every path and text that a file names is resolved and read, so that a task
//! no longer depends on its file once it is submitted. A file with any problem
//! has no meaning at all. This module neither loads policies nor starts work.

mod error;
mod handling;
mod load;
mod places;
mod shapes;
mod steps;
#[cfg(test)]
mod tests;
mod texts;

pub use error::{Problem, TaskFileError};
pub use load::{PolicyChoice, TaskFile, load, policy_choice};
pub use places::{PlaceError, Surroundings, check_workspace};
pub use shapes::file_schema;
pub use steps::{WORK_STEP, one_step};
