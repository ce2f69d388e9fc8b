//! The local API over HTTP on a Unix socket: the only module that names axum.
//!
//! It carries [`Api`] to other processes of the same user and nothing else: who
//! can open the socket is who may act, so the socket has mode 0600 and stands in
//! the data folder. It decides nothing and keeps no state.

use std::future::Future;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, Path as PathParam, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use checkrein_shared::api::routes::{
    self, ActRequest, CollectRequest, Created, EffectsQuery, EventsQuery, Health, PROBLEM_TYPE, Problem, Stored,
    WAIT_MS_MAX,
};
use checkrein_shared::api::socket::SocketAddress;
use checkrein_shared::api::{Api, EffectCursor, Error, Submission};
use checkrein_shared::blob::BLOB_BYTES_MAX;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use checkrein_shared::json;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixListener;

/// Opens the socket of a data folder. The caller holds the folder's lock, so a socket that is there already was left by
/// a process that is gone, and is replaced.
///
/// # Errors
///
/// The folder can't be written.
pub fn listen(data: &Path) -> io::Result<UnixListener> {
    let address = SocketAddress::of(data)?;
    match std::fs::remove_file(address.path()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(address.path())?;
    std::fs::set_permissions(address.path(), std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Serves until `shutdown` ends, then finishes the requests under way.
///
/// # Errors
///
/// The listener failed.
pub async fn serve(
    listener: UnixListener,
    api: Arc<dyn Api>,
    health: Health,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    axum::serve(listener, router(api, health)).with_graceful_shutdown(shutdown).await
}

/// The routes, for a server or a test.
pub fn router(api: Arc<dyn Api>, health: Health) -> Router {
    let blobs = Router::new()
        .route(routes::BLOBS, put(put_blob))
        .layer(DefaultBodyLimit::max(usize::try_from(BLOB_BYTES_MAX).unwrap_or(usize::MAX)));
    Router::new()
        .route(routes::HEALTH, get(move || async move { answer(Ok(health)) }))
        .route(routes::TASKS, get(tasks).post(submit))
        .route(routes::TASK, get(task))
        .route(routes::EVENTS, get(events))
        .route(routes::ACTIONS, post(act))
        .route(routes::CHECKPOINTS, get(checkpoints))
        .route(routes::EVIDENCE, get(evidence))
        .route(routes::INBOX, get(inbox))
        .route(routes::EFFECTS, get(effects))
        .route(routes::EPITAPH, get(epitaph))
        .route(routes::COLLECT, post(collect))
        .route(routes::BLOB, get(blob))
        .layer(DefaultBodyLimit::max(routes::BODY_BYTES_MAX))
        .merge(blobs)
        .method_not_allowed_fallback(|| async { refuse(Error::Invalid("this path takes another method".to_owned())) })
        .fallback(|| async { refuse(Error::NotFound("there is no such path in this version".to_owned())) })
        .with_state(api)
}

type Shared = State<Arc<dyn Api>>;

async fn tasks(State(api): Shared) -> Response {
    answer(api.tasks().await)
}

async fn submit(State(api): Shared, body: Bytes) -> Response {
    let submitted = match parse::<Submission>("submission", &body) {
        Ok(submission) => api.submit(submission).await,
        Err(error) => Err(error),
    };
    answer(submitted.map(|id| Created { id }))
}

async fn task(State(api): Shared, PathParam(id): PathParam<String>) -> Response {
    match task_id(&id) {
        Ok(id) => answer(api.task(&id).await),
        Err(error) => refuse(error),
    }
}

async fn events(
    State(api): Shared,
    PathParam(id): PathParam<String>,
    query: Result<Query<EventsQuery>, QueryRejection>,
) -> Response {
    let Ok(Query(query)) = query else {
        return refuse(Error::Invalid("the query is not `after=N&wait_ms=M` with whole numbers".to_owned()));
    };
    match task_id(&id) {
        Ok(id) => answer(api.events(&id, query.after, query.wait_ms.min(WAIT_MS_MAX)).await),
        Err(error) => refuse(error),
    }
}

async fn act(State(api): Shared, PathParam(id): PathParam<String>, body: Bytes) -> Response {
    match (task_id(&id), parse::<ActRequest>("action", &body)) {
        (Ok(id), Ok(request)) => answer(api.act(&id, request.action, &request.by).await),
        (Err(error), _) | (_, Err(error)) => refuse(error),
    }
}

async fn checkpoints(State(api): Shared, PathParam(id): PathParam<String>) -> Response {
    match task_id(&id) {
        Ok(id) => answer(api.checkpoints(&id).await),
        Err(error) => refuse(error),
    }
}

async fn evidence(State(api): Shared, PathParam(id): PathParam<String>) -> Response {
    match task_id(&id) {
        Ok(id) => answer(api.evidence(&id).await),
        Err(error) => refuse(error),
    }
}

async fn epitaph(State(api): Shared, PathParam(id): PathParam<String>) -> Response {
    match task_id(&id) {
        Ok(id) => answer(api.epitaph(&id).await),
        Err(error) => refuse(error),
    }
}

async fn collect(State(api): Shared, body: Bytes) -> Response {
    match parse::<CollectRequest>("request", &body) {
        Ok(request) => answer(api.collect(request.dry_run).await),
        Err(error) => refuse(error),
    }
}

async fn inbox(State(api): Shared) -> Response {
    answer(api.inbox().await)
}

async fn effects(State(api): Shared, query: Result<Query<EffectsQuery>, QueryRejection>) -> Response {
    let Ok(Query(EffectsQuery { task, after_task, after_key })) = query else {
        return refuse(Error::Invalid("the query is not `task=T&after_task=T&after_key=K`".to_owned()));
    };
    let after = match (after_task, after_key) {
        (Some(task), Some(key)) => Some(EffectCursor { task, key }),
        (None, None) => None,
        _ => return refuse(Error::Invalid("a page goes on after a task and a key, both".to_owned())),
    };
    answer(api.effects(task.as_ref(), after.as_ref()).await)
}

async fn blob(State(api): Shared, PathParam(digest): PathParam<String>) -> Response {
    let bytes = match digest.parse::<Digest>() {
        Ok(digest) => api.blob(digest).await,
        Err(error) => Err(Error::Invalid(error.to_string())),
    };
    match bytes {
        Ok(bytes) => ([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response(),
        Err(error) => refuse(error),
    }
}

async fn put_blob(State(api): Shared, body: Bytes) -> Response {
    answer(api.put_blob(body.into()).await.map(|digest| Stored { digest }))
}

fn task_id(text: &str) -> Result<TaskId, Error> {
    text.parse().map_err(|error: checkrein_shared::ids::InvalidId| Error::Invalid(error.to_string()))
}

fn parse<T: DeserializeOwned>(what: &'static str, body: &[u8]) -> Result<T, Error> {
    json::parse_as(what, body).map_err(|error| {
        let cause = std::error::Error::source(&error).map(|source| format!(": {source}"));
        // Some of these errors show their cause themselves; it must not stand there twice.
        let text = error.to_string();
        let cause = cause.filter(|cause| !text.ends_with(cause.as_str())).unwrap_or_default();
        Error::Invalid(format!("{text}{cause}"))
    })
}

fn answer<T: Serialize>(result: Result<T, Error>) -> Response {
    match result {
        Ok(value) => axum::Json(value).into_response(),
        Err(error) => refuse(error),
    }
}

fn refuse(error: Error) -> Response {
    let problem = Problem::from(error);
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, PROBLEM_TYPE)], axum::Json(problem)).into_response()
}
