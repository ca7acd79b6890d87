//! Requests that no client of ours sends: other names for this server, other sites, forms and plain text.
//! On every route, each is refused before the route is asked.

use crate::support::{Daemon, Fixture};

const TREE: &str =
    "//- ports.md\n# Ports\n\n## Ports on app1\n\nThe unit harbor-web.service opens port 8080.\n";

/// Every route with its method: from the description, which another test holds against the router.
pub(crate) fn routes() -> Vec<(&'static str, String)> {
    let described: serde_json::Value =
        serde_json::from_str(include_str!("../../../docs/openapi.json")).unwrap();
    let mut routes = vec![("GET", "/nowhere".to_owned()), ("PUT", "/v1/ask".to_owned())];
    for (path, operations) in described["paths"].as_object().unwrap() {
        let path =
            path.replace("{dir}", "x").replace("{path}", "ports.md").replace("{file}", "page.css");
        for (name, method) in [("get", "GET"), ("post", "POST")] {
            if operations.get(name).is_some() {
                routes.push((method, path.clone()));
            }
        }
    }
    assert!(routes.len() >= 34, "{routes:?}");
    routes
}

pub(crate) fn request(method: &str, path: &str, headers: &str) -> String {
    let body = if method == "GET" { "" } else { "{}" };
    let length =
        if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    format!("{method} {path} HTTP/1.1\r\n{headers}{length}Connection: close\r\n\r\n{body}")
}

fn code(body: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    value["error"]["code"].as_str().unwrap_or("").to_owned()
}

/// Names under which a browser may be made to reach this server, and what is no name at all.
fn hosts(port: &str) -> Vec<String> {
    let next = port.parse::<u32>().unwrap() % 60_000 + 1;
    let mut hosts: Vec<String> = [
        "evil.example",
        "localhost",
        "127.0.0.1",
        "[::1]",
        "localhost:80",
        "localhost:",
        "127.0.0.1:",
        "",
        "*",
        "null",
        "unix",
    ]
    .map(str::to_owned)
    .into();
    hosts.push(format!("127.0.0.1:{next}"));
    for name in [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.localhost",
        "localhost.",
        "127.0.0.1.",
        "LOCALHOST.",
        "localhost.localdomain",
        "127.1",
        "127.0.1",
        "127.0.0.2",
        "0.0.0.0",
        "0",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "127.0.0.1.nip.io",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:0:0:1]",
        "[::1%lo]",
        "[::1%25lo]",
        "[::]",
        "::1",
        "user@127.0.0.1",
        "user:word@localhost",
        "http://localhost",
        "//localhost",
        "localhost/",
        "localhost#",
        "localhost?",
        "localhost%00",
        "localhost%2e",
        "xn--localhost",
        "local host",
        "\u{ff4c}ocalhost",
        "localhost,evil.example",
        "-localhost",
        "localhost\u{0}",
    ] {
        hosts.push(format!("{name}:{port}"));
    }
    hosts.extend([
        format!("localhost:0{port}"),
        format!("localhost:{port}:{port}"),
        format!("localhost:+{port}"),
    ]);
    hosts
}

/// Origins that are not ours.
fn origins(port: &str) -> Vec<String> {
    let mut origins: Vec<String> = [
        "null",
        "NULL",
        "",
        "*",
        "https://evil.example",
        "file://",
        "data:",
        "about:blank",
        "http://localhost",
        "http://127.0.0.1",
        "http://[::1]",
        "chrome-extension://abcdef",
        "http://",
    ]
    .map(str::to_owned)
    .into();
    for form in [
        "http://evil.example:P",
        "http://localhost:P.evil.example",
        "http://localhost.evil.example:P",
        "http://localhost.:P",
        "http://127.1:P",
        "http://0.0.0.0:P",
        "http://[::ffff:7f00:1]:P",
        "http://user@localhost:P",
        "http://localhost:P/",
        "http://localhost:P/x",
        "http://localhost:P#",
        "ws://localhost:P",
        "ftp://localhost:P",
        "localhost:P",
        "//localhost:P",
        "http:/localhost:P",
        "http://localhost:P, http://evil.example",
        "http://localhost:P http://evil.example",
        "http://evil.example?http://localhost:P",
        "http://http://localhost:P",
    ] {
        origins.push(form.replace('P', port));
    }
    origins
}

/// What a form or a simple request of another site's page can send, and what only looks like JSON.
const KINDS: [&str; 15] = [
    "text/plain",
    "text/plain;charset=UTF-8",
    "text/plain; application/json",
    "text/html",
    "text/json",
    "multipart/form-data; boundary=x",
    "application/x-www-form-urlencoded",
    "application/x-www-form-urlencoded; application/json",
    "application/jsonx",
    "application/json, text/plain",
    "application/ld+json",
    "application/*",
    "*/*",
    "",
    "json",
];

#[test]
fn no_other_name_site_or_form_gets_to_any_route() {
    let fixture = Fixture::lexical(TREE);
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    let (own, port) =
        (daemon.address.clone(), daemon.address.rsplit(':').next().unwrap().to_owned());
    let (hosts, origins, routes) = (hosts(&port), origins(&port), routes());
    assert!(hosts.len() >= 50 && origins.len() >= 30, "{} {}", hosts.len(), origins.len());
    let json = "Content-Type: application/json\r\n";
    let mut sent = 0;
    let mut refused = |method: &str,
                       path: &str,
                       headers: &str,
                       statuses: &[u16],
                       codes: &[&str]| {
        let (status, body) = daemon.send(&request(method, path, headers));
        sent += 1;
        // What is no HTTP at all is refused below the routes, without a body.
        let is_ours = body.is_empty() && status == 400 || codes.contains(&code(&body).as_str());
        assert!(statuses.contains(&status) && is_ours, "{method} {path}\n{headers}{status} {body}");
    };
    for (method, path) in &routes {
        for host in &hosts {
            let headers = format!("Host: {host}\r\n{json}");
            refused(method, path, &headers, &[403, 400], &["host_not_allowed", "bad_host"]);
        }
        refused(method, path, json, &[400], &["bad_host"]);
        refused(
            method,
            path,
            &format!("Host: {own}\r\nHost: {own}\r\n{json}"),
            &[400],
            &["bad_host"],
        );
        // A request line that names another host than the header.
        let absolute = format!("http://evil.example{path}");
        refused(
            method,
            &absolute,
            &format!("Host: {own}\r\n{json}"),
            &[400, 403],
            &["host_not_allowed"],
        );
        for origin in &origins {
            let headers = format!("Host: {own}\r\nOrigin: {origin}\r\n{json}");
            refused(method, path, &headers, &[403], &["origin_not_allowed"]);
        }
        let two = format!(
            "Host: {own}\r\nOrigin: http://{own}\r\nOrigin: https://evil.example\r\n{json}"
        );
        refused(method, path, &two, &[403], &["origin_not_allowed"]);
        if *method != "POST" {
            continue;
        }
        for kind in KINDS {
            let headers = format!("Host: {own}\r\nContent-Type: {kind}\r\n");
            refused(method, path, &headers, &[415], &["not_json"]);
        }
        refused(method, path, &format!("Host: {own}\r\n"), &[415], &["not_json"]);
        let two = format!("Host: {own}\r\n{json}Content-Type: text/plain\r\n");
        refused(method, path, &two, &[415], &["not_json"]);
    }
    // The names that are ours, in any case, from our own page.
    for host in [
        own.clone(),
        format!("localhost:{port}"),
        format!("LocalHost:{port}"),
        format!("[::1]:{port}"),
    ] {
        let headers = format!("Host: {host}\r\nOrigin: http://{own}\r\n");
        assert_eq!(daemon.send(&request("GET", "/v1/status", &headers)).0, 200, "{host}");
    }
    assert!(sent > 3000, "{sent}");
}

#[test]
fn every_response_tells_browsers_what_they_may_not_do() {
    let fixture = Fixture::lexical(TREE);
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    let own = format!("Host: {}\r\nContent-Type: application/json\r\n", daemon.address);
    let mut pages = 0;
    for (method, path) in routes() {
        for headers in
            [own.clone(), format!("{own}Accept: text/html\r\n"), "Host: evil.example\r\n".into()]
        {
            // A listening MCP client is kept open; it has the headers all the same.
            if (method, path.as_str()) == ("GET", "/mcp") {
                continue;
            }
            let response = daemon.raw(&request(method, &path, &headers));
            let (head, body) = response.split_once("\r\n\r\n").unwrap();
            let head = head.to_ascii_lowercase();
            for wanted in [
                "x-content-type-options: nosniff",
                "x-frame-options: deny",
                "content-security-policy: default-src 'none'",
                "referrer-policy: same-origin",
                "cross-origin-resource-policy: same-origin",
                "cross-origin-opener-policy: same-origin",
                "frame-ancestors 'none'",
            ] {
                assert!(head.contains(wanted), "{method} {path}: no {wanted}\n{head}");
            }
            assert!(!head.contains("access-control-allow"), "{head}");
            assert!(!head.contains("unsafe") && !head.contains("script-src *"), "{head}");
            if head.contains("content-type: text/html") {
                pages += 1;
                let inline = body
                    .split("<script")
                    .skip(1)
                    .any(|s| !s.starts_with(" src=\"/") && !s.starts_with(" defer"));
                assert!(
                    !inline && !body.contains(" style=") && !body.contains(" onclick="),
                    "{path}"
                );
            }
        }
    }
    assert!(pages > 4, "{pages}");
}
