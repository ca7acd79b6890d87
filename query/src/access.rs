//! Who may use the server, beyond the checks that every request passes: a bearer token, and how many
//! requests a client may send.
//!
//! A client is the address of its connection. What a proxy says of the address behind it
//! (`X-Forwarded-For`) counts only where the proxy's own address is listed as trusted.

use axum::http::{HeaderMap, HeaderName, header};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::net::{IpAddr, Ipv6Addr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The shortest token, in bytes.
const TOKEN_BYTES_MIN: usize = 16;
/// Clients that are told apart; those beyond share what one may send.
const CLIENTS_MAX: usize = 10_000;
/// The name of connections over the Unix socket in `trusted_proxies`.
const UNIX: &str = "unix";
static FORWARDED: HeaderName = HeaderName::from_static("x-forwarded-for");

/// `[server]` of the configuration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// File with the token that every request must carry.
    pub token_file: Option<PathBuf>,
    /// Where to listen on a Unix socket.
    pub unix_socket: Option<PathBuf>,
    /// Requests that a client may send in a minute; as many at once.
    pub rate_limit: Option<u32>,
    /// Addresses and networks of proxies whose `X-Forwarded-For` is believed; `unix` for the socket.
    pub trusted_proxies: Vec<String>,
    /// Whether the daemon locks itself in.
    pub sandbox: crate::sandbox::Mode,
}

/// The keys of [`Settings`].
pub const KEYS: [&str; 5] = [
    "server.token_file",
    "server.unix_socket",
    "server.rate_limit",
    "server.trusted_proxies",
    "server.sandbox",
];

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// From this address.
    Address(IpAddr),
    /// Over the Unix socket.
    Unix,
}

/// Why a request may not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// It carries no token, or another one.
    Token,
    /// Its client has sent too many; after so many seconds it may send the next.
    Rate(u64),
}

/// Token and limit, as they were configured; by default everybody may do everything.
#[derive(Default)]
pub struct Access {
    token: Option<blake3::Hash>,
    rate: Option<Rate>,
}

impl Access {
    /// Reads the token and the list of proxies.
    ///
    /// # Errors
    /// When the token cannot be read or is too short, or a proxy is no address; with the key's name.
    pub fn new(settings: &Settings) -> Result<Self, String> {
        let token = settings.token_file.as_deref().map(read_token).transpose()?;
        let proxies = settings
            .trusted_proxies
            .iter()
            .map(|text| {
                Proxy::parse(text).ok_or_else(|| {
                    format!(
                        "server.trusted_proxies: `{text}` is no address, no network and not `{UNIX}`"
                    )
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let rate = match settings.rate_limit {
            Some(0) => return Err("server.rate_limit is a number of requests above 0".into()),
            Some(per_minute) => Some(Rate::new(per_minute, proxies)),
            None => None,
        };
        Ok(Self { token, rate })
    }

    /// Lets a request pass, or says why not.
    ///
    /// # Errors
    /// See [`Denied`].
    pub fn admit(
        &self,
        peer: Option<Peer>,
        headers: &HeaderMap,
        now: Instant,
    ) -> Result<(), Denied> {
        // The limit first: it also bounds how many tokens can be tried.
        if let Some(rate) = &self.rate {
            rate.admit(peer, headers, now).map_err(Denied::Rate)?;
        }
        match &self.token {
            Some(token) if !carries(headers, token) => Err(Denied::Token),
            _ => Ok(()),
        }
    }
}

/// The token's hash: hashes are compared in constant time.
fn read_token(path: &Path) -> Result<blake3::Hash, String> {
    let say = |e: String| format!("server.token_file `{}`: {e}", path.display());
    let text = std::fs::read_to_string(path).map_err(|e| say(e.to_string()))?;
    let token = text.trim();
    if token.len() < TOKEN_BYTES_MIN || token.contains(char::is_whitespace) {
        return Err(say(format!(
            "a token is one word of at least {TOKEN_BYTES_MIN} characters (openssl rand -hex 32)"
        )));
    }
    let mode = std::fs::metadata(path).map_or(0, |m| m.permissions().mode());
    if mode & 0o004 != 0 {
        tracing::warn!("everybody on this machine can read `{}` (chmod 640)", path.display());
    }
    Ok(blake3::hash(token.as_bytes()))
}

fn carries(headers: &HeaderMap, token: &blake3::Hash) -> bool {
    let values: Vec<_> = headers.get_all(header::AUTHORIZATION).iter().collect();
    let [value] = values[..] else { return false };
    let Some((scheme, given)) = value.to_str().ok().and_then(|v| v.split_once(' ')) else {
        return false;
    };
    scheme.eq_ignore_ascii_case("bearer") && blake3::hash(given.trim().as_bytes()) == *token
}

/// Proxies whose word counts.
#[derive(Debug, PartialEq)]
enum Proxy {
    Unix,
    /// All addresses whose first bits, so many, are these.
    Network(IpAddr, u32),
}

impl Proxy {
    fn parse(text: &str) -> Option<Self> {
        if text == UNIX {
            return Some(Self::Unix);
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u32>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(width);
        (bits <= width).then_some(Self::Network(address, bits))
    }

    fn has(&self, peer: Peer) -> bool {
        match (self, peer) {
            (Self::Unix, Peer::Unix) => true,
            (Self::Network(IpAddr::V4(net), bits), Peer::Address(IpAddr::V4(address))) => {
                let differs = net.to_bits() ^ address.to_bits();
                differs.checked_shr(32 - bits).unwrap_or(0) == 0
            }
            (Self::Network(IpAddr::V6(net), bits), Peer::Address(IpAddr::V6(address))) => {
                let differs = net.to_bits() ^ address.to_bits();
                differs.checked_shr(128 - bits).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// So many requests a minute for each client, as many at once.
struct Rate {
    /// Between two requests of a client that sends steadily.
    interval: Duration,
    /// How far ahead of that a client may be.
    burst: Duration,
    proxies: Vec<Proxy>,
    /// When each client will have used up what it has sent; none for those beyond [`CLIENTS_MAX`].
    clients: Mutex<FxHashMap<Option<Peer>, Instant>>,
}

impl Rate {
    fn new(per_minute: u32, proxies: Vec<Proxy>) -> Self {
        let interval = Duration::from_secs(60) / per_minute;
        Self { interval, burst: interval * per_minute, proxies, clients: Mutex::default() }
    }

    fn is_trusted(&self, peer: Peer) -> bool {
        self.proxies.iter().any(|p| p.has(peer))
    }

    /// Whose request it is: the last address that no trusted proxy has, as told by the proxies.
    fn client(&self, peer: Peer, headers: &HeaderMap) -> Peer {
        if !self.is_trusted(peer) {
            return peer;
        }
        let mut client = peer;
        let told: Vec<&str> =
            headers.get_all(&FORWARDED).iter().filter_map(|v| v.to_str().ok()).collect();
        for address in told.iter().flat_map(|v| v.split(',')).rev() {
            // What is no address was not written by a proxy that can be trusted.
            let Some(address) = parse_address(address.trim()) else { break };
            client = Peer::Address(address);
            if !self.is_trusted(client) {
                break;
            }
        }
        client
    }

    fn admit(&self, peer: Option<Peer>, headers: &HeaderMap, now: Instant) -> Result<(), u64> {
        let client = peer.map(|p| whole(self.client(p, headers)));
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= CLIENTS_MAX && !clients.contains_key(&client) {
            clients.retain(|_, until| *until > now);
        }
        let is_beyond = clients.len() >= CLIENTS_MAX && !clients.contains_key(&client);
        let until = clients.entry(if is_beyond { None } else { client }).or_insert(now);
        let next = (*until).max(now) + self.interval;
        let ahead = next.saturating_duration_since(now);
        if ahead > self.burst {
            return Err((ahead - self.burst).as_secs_f64().ceil().max(1.0) as u64);
        }
        *until = next;
        Ok(())
    }
}

/// An address with or without a port.
fn parse_address(text: &str) -> Option<IpAddr> {
    let socket = || text.parse::<std::net::SocketAddr>().ok().map(|s| s.ip());
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    text.parse().ok().or_else(socket).or_else(bracketed).map(|a: IpAddr| a.to_canonical())
}

/// One client has a whole network of 64 bits in IPv6.
fn whole(peer: Peer) -> Peer {
    match peer {
        Peer::Address(IpAddr::V6(address)) => {
            let network = address.to_bits() >> 64 << 64;
            Peer::Address(IpAddr::V6(Ipv6Addr::from_bits(network)))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> Peer {
        Peer::Address(text.parse().unwrap())
    }

    fn forwarded(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(&FORWARDED, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_forwarded_address_counts_from_a_trusted_proxy_alone() {
        let trusted = ["10.0.0.0/8", "::1", "unix"];
        let proxies = trusted.iter().map(|t| Proxy::parse(t).unwrap()).collect();
        let rate = Rate::new(1, proxies);
        for (from, told, client) in [
            ("192.0.2.1", vec!["127.0.0.1"], "192.0.2.1"),
            ("10.1.2.3", vec!["192.0.2.9"], "192.0.2.9"),
            ("10.1.2.3", vec!["127.0.0.1, 192.0.2.9"], "192.0.2.9"),
            ("10.1.2.3", vec!["127.0.0.1", "192.0.2.9, 10.9.9.9"], "192.0.2.9"),
            ("10.1.2.3", vec!["192.0.2.9:4711"], "192.0.2.9"),
            ("10.1.2.3", vec!["[2001:db8::1]:80"], "2001:db8::1"),
            ("10.1.2.3", vec!["::ffff:192.0.2.9"], "192.0.2.9"),
            ("10.1.2.3", vec!["192.0.2.9, rubbish"], "10.1.2.3"),
            ("10.1.2.3", vec![], "10.1.2.3"),
            ("11.1.2.3", vec!["192.0.2.9"], "11.1.2.3"),
            ("::1", vec!["192.0.2.9"], "192.0.2.9"),
            ("::2", vec!["192.0.2.9"], "::2"),
        ] {
            let found = rate.client(peer(from), &forwarded(&told));
            assert_eq!(found, peer(client), "{from} {told:?}");
        }
        assert_eq!(rate.client(Peer::Unix, &forwarded(&["192.0.2.9"])), peer("192.0.2.9"));
        let none = Rate::new(1, Vec::new());
        assert_eq!(none.client(Peer::Unix, &forwarded(&["192.0.2.9"])), Peer::Unix);
    }

    #[test]
    fn a_client_gets_a_minutes_worth_at_once_and_then_a_steady_stream() {
        let rate = Rate::new(6, Vec::new());
        let (start, none) = (Instant::now(), HeaderMap::new());
        let ask = |from: &str, s: u64| {
            rate.admit(Some(peer(from)), &none, start + Duration::from_secs(s))
        };
        for _ in 0..6 {
            assert_eq!(ask("192.0.2.1", 0), Ok(()));
        }
        assert_eq!(ask("192.0.2.1", 0), Err(10));
        assert_eq!(ask("192.0.2.1", 9), Err(1));
        assert_eq!(ask("192.0.2.1", 10), Ok(()));
        assert_eq!(ask("192.0.2.1", 10), Err(10));
        // Others do not suffer; a network of IPv6 is one client.
        assert_eq!(ask("192.0.2.2", 0), Ok(()));
        for n in 0..6 {
            assert_eq!(ask(&format!("2001:db8::{n}"), 0), Ok(()));
        }
        assert_eq!(ask("2001:db8::ffff", 0), Err(10));
        assert_eq!(ask("2001:db8:0:1::1", 0), Ok(()));
    }

    #[test]
    fn many_clients_take_bounded_room() {
        let rate = Rate::new(6, Vec::new());
        let (now, none) = (Instant::now(), HeaderMap::new());
        let mut denied = 0;
        for n in 0..CLIENTS_MAX as u32 + 100 {
            let from = Peer::Address(IpAddr::V4(n.into()));
            denied += usize::from(rate.admit(Some(from), &none, now).is_err());
        }
        assert_eq!(rate.clients.lock().unwrap().len(), CLIENTS_MAX + 1);
        assert_eq!(denied, 94, "those beyond share one client's six");
        let later = now + Duration::from_secs(3600);
        assert_eq!(rate.admit(Some(peer("192.0.2.1")), &none, later), Ok(()));
        assert!(rate.clients.lock().unwrap().len() < 10);
    }

    #[test]
    fn settings_that_are_wrong_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        let settings = |token: &str| {
            std::fs::write(&file, token).unwrap();
            Settings { token_file: Some(file.clone()), ..Settings::default() }
        };
        assert!(Access::new(&settings("0123456789abcdef\n")).is_ok());
        for bad in ["", "short", "0123456789 abcdef"] {
            let error = Access::new(&settings(bad)).err().unwrap();
            assert!(error.contains("server.token_file") && error.contains("16"), "{error}");
        }
        for bad in ["", "10.0.0.0/33", "::/129", "localhost", "10.0.0/8"] {
            let settings = Settings { trusted_proxies: vec![bad.into()], ..Settings::default() };
            assert!(Access::new(&settings).err().unwrap().contains("trusted_proxies"), "{bad}");
        }
        let zero = Settings { rate_limit: Some(0), ..Settings::default() };
        assert!(Access::new(&zero).is_err());
    }
}
