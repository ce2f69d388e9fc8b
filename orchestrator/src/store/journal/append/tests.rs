use super::*;

/// Stands in while a test wraps the real file.
pub(super) struct Nowhere;

impl SegmentFile for Nowhere {
    fn write_all_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::Error::other("nowhere"))
    }

    fn sync_data(&self) -> io::Result<()> {
        Err(io::Error::other("nowhere"))
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(io::Error::other("nowhere"))
    }
}
