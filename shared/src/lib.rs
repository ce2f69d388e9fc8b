//! What every role of Checkrein shares: ids, hashing, records, the policy
//! model, and the seams (blobs, bus, coordinator) that have more than one
//! implementation. It holds no role's logic and starts nothing by itself.

pub mod causes;
pub mod digest;
pub mod ids;
pub mod json;
pub mod time;

pub mod blob;
pub mod records;
pub mod redact;
pub mod signing;
pub mod text;
pub mod tree;

pub mod policy;
pub mod process;
pub mod task_file;

pub mod api;
pub mod bus;
pub mod coordinator;
