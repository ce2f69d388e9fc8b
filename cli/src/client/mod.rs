//! How commands reach Checkrein: through the process that has the data folder
//! open, or by opening it themselves.

mod http;
mod select;

use std::sync::Arc;

use async_trait::async_trait;
use checkrein_shared::api::routes::{Health, Serving};
use checkrein_shared::api::{self, Api};
use checkrein_shared::blob::{self, Blobs};
use checkrein_shared::digest::Digest;

pub(crate) use http::HttpApi;
pub(crate) use select::{find_checkpoint, find_task, load_checkpoint};

use crate::context::Context;
use crate::embedded::Embedded;
use crate::failure::{Failure, file_hint};

/// A connection for one command.
pub(crate) struct Session {
    api: Arc<dyn Api>,
    /// Who answers, where it is another process.
    pub(crate) server: Option<Health>,
    embedded: Option<Embedded>,
}

impl Session {
    /// Connects to the running instance, or opens the data folder.
    pub(crate) async fn open(context: &Context) -> Result<Self, Failure> {
        match connect(context).await? {
            Some((api, health)) => Ok(Self { api: Arc::new(api), server: Some(health), embedded: None }),
            None => {
                let embedded = Embedded::open(context).await?;
                Ok(Self { api: embedded.api(), server: None, embedded: Some(embedded) })
            }
        }
    }

    /// What is asked.
    pub(crate) fn api(&self) -> &dyn Api {
        self.api.as_ref()
    }

    /// Blobs, whoever has them.
    pub(crate) fn blobs(&self) -> ApiBlobs<'_> {
        ApiBlobs(self.api())
    }

    /// Whether somebody works on `task` while this command runs.
    pub(crate) fn is_served(&self, task: &checkrein_shared::ids::TaskId) -> bool {
        match self.server.as_ref().map(|health| &health.serving) {
            Some(Serving::All) => true,
            Some(Serving::One(served)) => served == task,
            None => false,
        }
    }

    /// Frees the data folder.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        match self.embedded {
            Some(embedded) => embedded.close().await,
            None => Ok(()),
        }
    }
}

/// Connects to the running instance, if there is one.
pub(crate) async fn connect(context: &Context) -> Result<Option<(HttpApi, Health)>, Failure> {
    let failed = |error: std::io::Error| {
        let failure = Failure::caused("can't look whether an instance is running", &error).at(context.data.display());
        failure.hint(file_hint(&error).unwrap_or("name another folder with --data DIR"))
    };
    let Some(api) = HttpApi::new(&context.data).map_err(failed)? else { return Ok(None) };
    Ok(api.health().await?.map(|health| (api, health)))
}

/// Blobs through the API.
pub(crate) struct ApiBlobs<'a>(pub(crate) &'a dyn Api);

fn blob_error(digest: Option<Digest>, error: api::Error) -> blob::Error {
    match (error, digest) {
        (api::Error::NotFound(_), Some(digest)) => blob::Error::Missing(digest),
        (error, _) => {
            blob::Error::Io { doing: "reach the blob store".to_owned(), source: std::io::Error::other(error) }
        }
    }
}

#[async_trait]
impl Blobs for ApiBlobs<'_> {
    async fn put(&self, bytes: &[u8]) -> Result<Digest, blob::Error> {
        self.0.put_blob(bytes.to_vec()).await.map_err(|error| blob_error(None, error))
    }

    async fn get(&self, digest: Digest, limit: u64) -> Result<Vec<u8>, blob::Error> {
        let bytes = self.0.blob(digest).await.map_err(|error| blob_error(Some(digest), error))?;
        let size = bytes.len() as u64;
        if size > limit {
            return Err(blob::Error::TooLarge { size, limit });
        }
        let found = Digest::of(&bytes);
        if found == digest { Ok(bytes) } else { Err(blob::Error::Damaged { expected: digest, found }) }
    }

    async fn size(&self, digest: Digest) -> Result<Option<u64>, blob::Error> {
        match self.0.blob(digest).await {
            Ok(bytes) => Ok(Some(bytes.len() as u64)),
            Err(api::Error::NotFound(_)) => Ok(None),
            Err(error) => Err(blob_error(Some(digest), error)),
        }
    }
}
