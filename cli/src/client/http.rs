//! The API of another process, over HTTP on its Unix socket.

use std::io;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use checkrein_shared::api::routes::{self, ActRequest, CollectRequest, Created, Health, Problem, Stored};
use checkrein_shared::api::socket::SocketAddress;
use checkrein_shared::api::{
    Acted, Action, Api, CollectReport, EffectCursor, Epitaph, Error, EventView, EvidenceView, InboxItem, Submission,
    TaskSummary, TaskView,
};
use checkrein_shared::causes::with_causes;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use checkrein_shared::records::{CheckpointRef, EffectEntry};
use reqwest::{Method, RequestBuilder, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How long a request may take besides the time that it waits on purpose.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long collecting garbage may take: it looks at everything that is stored.
const COLLECT_PATIENCE: Duration = Duration::from_secs(4 * 3_600);

/// The largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// See the module.
pub(crate) struct HttpApi {
    client: reqwest::Client,
    /// Keeps a short path to the socket valid.
    _address: SocketAddress,
}

impl HttpApi {
    /// A client for the instance that has the data folder open; `None` where there is no socket.
    pub(crate) fn new(data: &Path) -> io::Result<Option<Self>> {
        if !data.join(routes::SOCKET_FILE).try_exists()? {
            return Ok(None);
        }
        let address = SocketAddress::of(data)?;
        let client = reqwest::Client::builder().unix_socket(address.path().to_owned()).build();
        Ok(Some(Self { client: client.map_err(io::Error::other)?, _address: address }))
    }

    /// Who answers; `None` where nobody does: the socket was left by a process that is gone.
    pub(crate) async fn health(&self) -> Result<Option<Health>, Error> {
        let request = self.request(Method::GET, routes::HEALTH).timeout(Duration::from_secs(5));
        match request.send().await {
            Ok(response) => read(response).await.map(Some),
            Err(error) if error.is_connect() => Ok(None),
            Err(error) => Err(unreachable(&error)),
        }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        // The host is only for the form: the connection goes to the socket.
        self.client.request(method, format!("http://checkrein{path}")).timeout(PATIENCE)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        read(send(self.request(Method::GET, path)).await?).await
    }

    async fn post<B: Serialize + Sync, T: DeserializeOwned>(&self, path: &str, body: &B) -> Result<T, Error> {
        read(send(self.request(Method::POST, path).json(body)).await?).await
    }
}

fn of(route: &str, id: &TaskId) -> String {
    routes::fill(route, id.as_str())
}

fn unreachable(error: &reqwest::Error) -> Error {
    Error::Unavailable(format!("the running instance does not answer: {}", with_causes(error)))
}

async fn send(request: RequestBuilder) -> Result<Response, Error> {
    request.send().await.map_err(|error| unreachable(&error))
}

async fn bytes(response: Response) -> Result<Vec<u8>, Error> {
    let status = response.status();
    if response.content_length().is_some_and(|length| length > ANSWER_BYTES_MAX) {
        return Err(Error::Unavailable("the running instance sends more than this command reads".to_owned()));
    }
    let body = response.bytes().await.map_err(|error| unreachable(&error))?;
    if status.is_success() {
        return Ok(body.into());
    }
    Err(match serde_json::from_slice::<Problem>(&body) {
        Ok(problem) => problem.into(),
        Err(_) => Error::Unavailable(format!("the running instance answers with {status}")),
    })
}

async fn read<T: DeserializeOwned>(response: Response) -> Result<T, Error> {
    let body = bytes(response).await?;
    // Tolerant of more than is known: the other process can be newer.
    serde_json::from_slice(&body).map_err(|error| {
        Error::Unavailable(format!("the running instance is of another version: its answer can't be read ({error})"))
    })
}

#[async_trait]
impl Api for HttpApi {
    async fn submit(&self, submission: Submission) -> Result<TaskId, Error> {
        Ok(self.post::<_, Created>(routes::TASKS, &submission).await?.id)
    }

    async fn tasks(&self) -> Result<Vec<TaskSummary>, Error> {
        self.get(routes::TASKS).await
    }

    async fn task(&self, id: &TaskId) -> Result<TaskView, Error> {
        self.get(&of(routes::TASK, id)).await
    }

    async fn events(&self, id: &TaskId, after: u64, wait_ms: u64) -> Result<Vec<EventView>, Error> {
        let path = format!("{}?after={after}&wait_ms={wait_ms}", of(routes::EVENTS, id));
        let request = self.request(Method::GET, &path).timeout(PATIENCE + Duration::from_millis(wait_ms));
        read(send(request).await?).await
    }

    async fn act(&self, id: &TaskId, action: Action, by: &str) -> Result<Acted, Error> {
        self.post(&of(routes::ACTIONS, id), &ActRequest { action, by: by.to_owned() }).await
    }

    async fn inbox(&self) -> Result<Vec<InboxItem>, Error> {
        self.get(routes::INBOX).await
    }

    async fn checkpoints(&self, id: &TaskId) -> Result<Vec<CheckpointRef>, Error> {
        self.get(&of(routes::CHECKPOINTS, id)).await
    }

    async fn evidence(&self, id: &TaskId) -> Result<Vec<EvidenceView>, Error> {
        self.get(&of(routes::EVIDENCE, id)).await
    }

    async fn effects(&self, task: Option<&TaskId>, after: Option<&EffectCursor>) -> Result<Vec<EffectEntry>, Error> {
        // Ids and digests hold only characters that a query may hold, but for the digest's colon, which it may hold too.
        let mut query: Vec<String> = task.iter().map(|task| format!("task={task}")).collect();
        if let Some(EffectCursor { task, key }) = after {
            query.push(format!("after_task={task}&after_key={key}"));
        }
        self.get(&format!("{}?{}", routes::EFFECTS, query.join("&"))).await
    }

    async fn blob(&self, digest: Digest) -> Result<Vec<u8>, Error> {
        let path = routes::fill(routes::BLOB, &digest.to_string());
        bytes(send(self.request(Method::GET, &path)).await?).await
    }

    async fn epitaph(&self, id: &TaskId) -> Result<Epitaph, Error> {
        self.get(&of(routes::EPITAPH, id)).await
    }

    async fn collect(&self, dry_run: bool) -> Result<CollectReport, Error> {
        let request = self.request(Method::POST, routes::COLLECT).json(&CollectRequest { dry_run });
        read(send(request.timeout(COLLECT_PATIENCE)).await?).await
    }

    async fn put_blob(&self, body: Vec<u8>) -> Result<Digest, Error> {
        let request = self.request(Method::PUT, routes::BLOBS).body(body);
        Ok(read::<Stored>(send(request).await?).await?.digest)
    }
}
